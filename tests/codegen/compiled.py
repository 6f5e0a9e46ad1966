"""The targets of compiled code that are here, by the name of their builders."""

from mlcweb.runtime.host import engine, wasm_target

BUILDERS = {}
if engine.available():
    BUILDERS["wasm"] = wasm_target.build
if engine.has_llvm():
    from mlcweb.runtime.host import llvm_target

    BUILDERS["llvm"] = llvm_target.build

LANGUAGES = {"wasm": "wat", "llvm": "ll"}


def compiled(target, func, **options):
    """A function as code of a target, and not of NumPy, which takes what has no other form."""
    kernel = BUILDERS[target]({"main": func}, lambda name: None, **options)["main"]
    assert kernel.language == LANGUAGES[target]
    return kernel
