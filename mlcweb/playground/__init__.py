"""The Python half of the page: running a cell, and views of its results as plain JSON."""
