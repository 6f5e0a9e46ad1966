"""The methods of Schedule, one file per family, each with the instruction kinds it records."""
