"""The fault benchmark: trainings with known faults, recorded once, judged again and again.

Run its parts from the root of the repository: `python -m benchmarks.faults.record --help`.
"""
