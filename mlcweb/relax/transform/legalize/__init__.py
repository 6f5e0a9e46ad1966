"""How operators are lowered: the attribute "FLegalize" of each, one file per family.

Most are a line: `by(topi.sum, "axis", "keepdims")` is a call of the function that `topi.sum` makes
of the arguments and the named attributes. Importing this package enters all of them.
"""

from mlcweb.relax.transform.legalize import (
    create, elementwise, image, index, linear_algebra, manipulate, nn, sorting, statistical,
)  # fmt: skip
