"""What the targets share whose code is instructions of a processor: `wasm` and `llvm`."""
