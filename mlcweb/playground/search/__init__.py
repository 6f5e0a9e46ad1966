"""Searches of the page: begun by names of the program, followed one trial at a time."""

from mlcweb.playground.search.calls import begin, details, finish, forget, step, workload
from mlcweb.playground.search.end_to_end import compare
from mlcweb.playground.search.storage import read_files
