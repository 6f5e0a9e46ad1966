"""The API reference: which names are public, what each is beside TVM's, and the pages of it."""
