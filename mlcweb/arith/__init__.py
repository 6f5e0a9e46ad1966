"""Integers: bounds, simplification, iterator maps and regions.

Under TVM's names, for programs; what only this package knows is in its modules.
"""

from typing import Any

from mlcweb.arith.analyzer import (
    Analyzer,
    Extension,
    CompareResult,
    ProofStrength,
    conjunction,
    conjuncts,
    const_int_bound,
)
from mlcweb.arith.equality import same_expression, same_expressions
from mlcweb.arith.int_set import (
    IntervalSet,
    IntSet,
    eval_range,
    eval_set,
    intersect,
    neg_inf,
    pos_inf,
    union,
)
from mlcweb.arith.interval import ConstIntBound
from mlcweb.arith.iter_affine_map import (
    IterMapExpr,
    IterMapLevel,
    IterMapResult,
    IterMark,
    IterSplitExpr,
    IterSumExpr,
    detect_iter_map,
    inverse_affine_iter_map,
    iter_map_simplify,
    normalize_iter_map_to_expr,
    normalize_to_iter_sum,
    subspace_divide,
)
from mlcweb.arith.linear_equations import (
    IntConstraints,
    IntConstraintsTransform,
    solve_linear_equations,
)
from mlcweb.arith.linear_inequalities import solve_linear_inequalities
from mlcweb.arith.modular import ModularSet
from mlcweb.arith.pattern import deduce_bound, detect_clip_bound, detect_linear_equation
from mlcweb.arith.region import (
    bounding_box,
    estimate_region,
    estimate_region_lower_bound,
    estimate_region_strict_bound,
    estimate_region_upper_bound,
    union_lower_bound,
)
from mlcweb.ir.errors import TVMError
