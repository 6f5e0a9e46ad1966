"""Integers: bounds, simplification, iterator maps and regions."""

from mlcweb.arith.analyzer import Analyzer, conjuncts, const_int_bound
from mlcweb.arith.equality import same_expression
from mlcweb.arith.interval import ConstIntBound
from mlcweb.arith.modular import ModularSet
from mlcweb.arith.iter_expr import IterMark, IterSplit, IterSum, mark_to_expr
from mlcweb.arith.iter_map import (
    BIJECTIVE,
    NO_CHECK,
    SURJECTIVE,
    IterMapResult,
    detect_iter_map,
    iter_map_simplify,
)
from mlcweb.arith.int_set import IntSet, eval_range, eval_set, intersect, union
from mlcweb.arith.region import estimate_region, estimate_region_upper_bound
from mlcweb.arith.subspace import Subspace, subspace_divide
