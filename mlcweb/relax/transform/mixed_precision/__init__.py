"""ToMixedPrecision: what each operator does with half precision (policy.py), which variables are
asked for in it only (needs.py), and the pass (to_mixed_precision.py)."""

from mlcweb.relax.transform.mixed_precision.to_mixed_precision import ToMixedPrecision

__all__ = ["ToMixedPrecision"]
