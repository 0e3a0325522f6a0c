"""`%load_ext mindpulse`: a run while it trains, its report, and tensors, in a notebook.

look      run folder -> what a live view shows, cheap enough to be repeated
live      that as HTML and as text, its curves drawn by spark
page      the whole report in a frame of its own
following views one after the other, until the time is over or the training has ended
arguments a line of the magic -> what is asked for
magic     `%mindpulse`; the only place that touches the shell
"""
