"""Event files of TensorBoard and MindSpore, read and written.

Records
    frame          lengths and sums, which both formats share
    sums           the sums of many records at a time
    walk           from record to record, and over damage to the next
    wire           where the fields of an event stand
    layout shapes  records of one shape, and periods of them
    scan window    a stretch of a file, the quick way where it can be
    parts          what a scan finds
What is in them
    values tensors histogram decode    what a value is, and its numbers
    entries index                      what one file holds, found in one pass
    names report                       of files; what there is to say about one
    sources columns read run           series out of files, and the run
Writing
    encode messages bars               events as bytes
    writer mirror                      files, and a copy of a run that is being recorded
"""
