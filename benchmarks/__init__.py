"""How fast compiled programs are.

NumPy computes on one thread, as what it is compared with does. It reads how many at its import.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
