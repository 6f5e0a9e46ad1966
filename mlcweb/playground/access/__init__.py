"""Why a program is faster: which addresses it touches in which order, and what a cache makes of it.

`small` makes a program short enough to be run by the interpreter, `recording` runs it and keeps its
accesses, `strides` tells how each access moves, `cache` counts hits, `sentences` compares.
Importing the package imports no NumPy; all of its modules but `small` and `derivation` do.
"""
