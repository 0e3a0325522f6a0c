"""What `mindpulse ascend show` prints of each kind of file: lines for people, values for programs.

profile    a profiler's folder or file
chips      the text of npu-smi
versions   files of CANN, driver and firmware
memory     logs about memory, and the memory tracker's blocks
view       what they have in common
"""
