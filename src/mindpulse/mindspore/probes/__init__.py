"""What runs inside the training step: closures that measure a node and write a row of the ring.

What works in graph mode, under jit and in PyNative alike (docs/mindspore-notes.md): closures over
Parameters, numbers, Primitives, functions and lists of functions. Never over other Python objects:
the graph compiler does not resolve them all.
"""
