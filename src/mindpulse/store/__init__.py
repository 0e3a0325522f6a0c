"""The run folder: what is written by a training and read by everything else.

Bytes
    wire       varints and fields of protobuf
    crc        checksums of many rows at once
    codec      rows <-> bytes
    format     the header of a file <-> SeriesSpec
    names      tag <-> file name
    salvage    the header of a file, out of its rows
Writing
    files      the file system, made to be faked
    part       one series into its files
    notes      text beside the numbers
    writer     one rank into its folder
    entries    what the recorder is handed
    recording  when to write, retry and drop
    mounts     is it a network file system?
Reading
    one_file   one file: all of it, or what is new
    reader     a whole run: what is new
    merge      parts and attempts as one series
    check      what is in a folder, and is it whole?
    run        a run as it stands
Both
    folder     attempts and ranks
"""
