"""How primitives change a program: loop nests, blocks in them, and accesses of buffers."""
