"""Having programs built, timed and checked: in this process, in others, in a page, on a cluster."""
