"""The formats of `mindpulse export`: pieces of series in, files out, nothing held whole.

source    what is exported, piece by piece
files     CSV and JSON, one file per series and rank
long      one table of all points, CSV or Parquet
parquet   one file per series and rank
events    event files of TensorBoard and MindSpore
"""
