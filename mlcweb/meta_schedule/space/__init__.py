"""The schedules of a program that a search chooses from: rules, generators, post-processors."""
