"""Programs of users: what they define, and what to tell of the errors that they raise.

The page and the command line run such programs, and both show their errors and offer what they
define: modules, schedules, functions of a schedule.
"""
