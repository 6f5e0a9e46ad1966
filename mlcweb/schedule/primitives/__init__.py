"""Schedule primitives, one file per family: pure functions from state to state, with checks."""
