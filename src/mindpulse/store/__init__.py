"""The run folder: what is written by a training and read by everything else.

Bytes
    wire       varints and fields of protobuf
    crc        checksums of many rows at once
    codec      rows <-> bytes
    format     the header of a file <-> SeriesSpec
    names      tag <-> file name
    index_format  the bytes of an index
    salvage    the header of a file, out of its rows
    breaks     rows that stand out of line
Writing
    files      the file system, made to be faked
    backlog    rows that wait, and rows that may not be on the disk yet
    part       one series into its files
    notes      text beside the numbers
    writer     one rank into its folder
    entries    what the recorder is handed
    recording  when to write, retry and drop
    mounts     is it a network file system?
    holding    does somebody write here?
    index_writer  the index beside a file
Reading
    pieces     rows of one length, some at a time
    part_file  one file by position
    repeats    rows that a writer repeated in a new part
    gather     parts and attempts as one series, piece by piece
    blocks     what is known of rows without the rows
    overview   a series in few buckets
    index      the index, as far as it can be trusted
    survey     the overview, out of the index and the rows
    one_file   one file: all of it, or what is new
    patience   what has not arrived yet, and what never will
    reader     a whole run: what is new
    merge      parts and attempts as one series
    check      what is in a folder, and is it whole?
    run        a run, ours or another tool's
    folder_run  our run folder as it stands
    asked      what is asked of a run, and what to say where it lacks it
Repairing
    flips      one flipped bit, out of the checksum
    resync     whole rows wherever they stand
    rebuild    a new file out of a damaged one
    description  run.json out of what is left
    aside      where the damaged file goes
    repair     a whole run
Both
    folder     attempts and ranks
"""
