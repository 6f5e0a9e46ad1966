"""The WebAssembly target."""
