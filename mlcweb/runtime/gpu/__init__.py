"""Programs and arrays on a GPU."""
