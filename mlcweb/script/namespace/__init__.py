"""What stands behind the names of `T`, by subject; `mlcweb.script.tir` has the table."""
