"""What CANN, the driver and the profiler of an Ascend machine write, read without a framework."""
