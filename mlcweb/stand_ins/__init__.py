"""Stand-ins over NumPy for packages that have no build for browsers.

`mlcweb.compat.install` lets programs in the page import them under the names of the packages. They
use nothing else of mlcweb, and nothing else of mlcweb uses them.
"""
