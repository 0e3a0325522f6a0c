"""`mindpulse query --sql`: one SELECT over a run, through a DuckDB that can do nothing else.

parse     the statement: one SELECT, and the tables that it names
text      names and SQL that are written here
records   notes, alerts and the list of series as tables
tables    what was named, read out of the run and handed to the engine
engine    a locked database, limits of memory and time, errors in words
query     a statement in, rows out: table, CSV, JSON
"""
