"""A small Sphinx project with live cells."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "A course"
extensions = ["mlc_cells"]
mlc_playground = "https://play.example.org/"
