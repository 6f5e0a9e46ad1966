"""The target "llvm": kernels as LLVM's intermediate representation, in its text form."""
