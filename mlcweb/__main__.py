"""``python -m mlcweb``: the command line."""

import sys

from mlcweb.cli import main

if __name__ == "__main__":
    sys.exit(main())
