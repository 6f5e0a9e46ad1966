"""What primitives ask of a program: who reads and writes what, in which order, and how much."""
