"""`tvm.tir.tensor_intrin`: instructions of processors and GPUs that compute a tile at once.

Each has a description, by which `Schedule.tensorize` finds what it replaces, and an implementation
that names the instruction. A target that has no such instruction refuses the program when it is
built. They are registered when their module is imported.
"""
