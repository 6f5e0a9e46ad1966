"""Why a program is faster: which addresses it touches in which order, and what a cache makes of it.

`small` makes a program short enough to be run by the interpreter, `recording` runs it and keeps its
accesses, `strides` tells how each access moves, `cache` counts hits, `sentences` compares.
NumPy is imported by what runs and counts: `recording`, `strides`, `cache` and `sentences`.
"""
