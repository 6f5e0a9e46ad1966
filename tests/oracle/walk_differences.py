"""Why a real TVM 0.27 and we differ on random walks: every kind of difference, with its reason."""

from __future__ import annotations

import re
from typing import NamedTuple


class Kind(NamedTuple):
    """A kind of difference: what happens, at which primitives and with which words of who refuses
    or of what is wrong (both as patterns), and why."""

    what: str
    primitives: str
    words: str
    why: str


ANY = r"\w*"

KINDS = (
    Kind(
        "we refuse what TVM gets wrong", ANY, "",
        "TVM does not look; what it makes computes other numbers, or nothing at all",
    ),
    Kind(
        ".*", ANY, r"the buffer .* has no (view|partition)|T.Buffer describes parameters|\[\(\)\]",
        "spellings of T.decl_buffer, and of the element of a buffer without dimensions, that we "
        "do not read",
    ),
    Kind(
        "TVM goes wrong", "blockize|decompose_reduction", "axis .* has|has no value|OutOfBounds",
        "TVM drops the first value of a loop that does not begin at 0, and the value of a loop "
        "variable that a block uses without an iterator",
    ),
    Kind(
        "TVM goes wrong", "cache_inplace|(reindex_)?cache_read|transform_block_layout",
        "has no value|is not defined|wrong numbers",
        "TVM leaves variables behind where they no longer have a value, and copies what is "
        "overwritten in between",
    ),
    Kind(
        "TVM goes wrong", "cache_read", "OutOfBounds: Reading",
        "TVM copies no more than a later block overwrites, after it did",
    ),
    Kind(
        "TVM goes wrong", "cache_index", "axis .* has|OutOfBounds|wrong numbers",
        "TVM fills as many entries as there are iterations of the block's outermost loop",
    ),
    Kind(
        "TVM goes wrong", "loop_partition", "",
        "TVM's parts drop the first value of a loop that does not begin at 0, and the predicate",
    ),
    Kind(
        "TVM goes wrong", "split", "OutOfBounds",
        "TVM reads what a predicate compares before it asks whether the iteration exists",
    ),
    Kind(
        "TVM goes wrong", "reindex_cache_(read|write)", "OutOfBounds: Axis",
        "TVM's copy has the iterators of the block without its predicate",
    ),
    Kind(
        "TVM goes wrong", "blockize", "wrong numbers",
        "TVM takes an iterator that is bound to a constant for 0",
    ),
    Kind(
        "TVM goes wrong", "cache_write", "wrong numbers",
        "TVM copies back elements that no block has written, and lets statements in front of the "
        "block read the copy before anything is in it",
    ),
    Kind(
        "TVM goes wrong", "transform_layout", "OutOfBounds: Writing",
        "TVM has -v // 4 for v // -4 where an index counts down, which is another number",
    ),
    Kind("TVM crashes", "loop_partition|merge|reindex_cache_read", "", "TVM breaks down"),
    Kind(
        "TVM does not read", "", "no attribute 'LetStmt'", "TVM 0.27 has no T.LetStmt",
    ),
    Kind(
        "TVM does not read", "", r"Divide by zero|/ T\.fabs\(T\.float32\(0",
        "TVM folds a division of floats by the constant 0, and takes it for an error",
    ),
    Kind(
        "TVM refuses", ANY,
        r"^(InternalError|TypeError|KeyError|IndexError|ValueError: Check)|Flatten\(\)$",
        "TVM breaks down, for one where cache_index finds no index, or one, to keep, and where "
        "indices are no variables but sums",
    ),
    Kind(
        "TVM refuses", ANY, "values to unpack|reorder indices are invalid",
        "TVM's program has other blocks or loops there, and computes the same",
    ),
    Kind(
        "TVM refuses", ANY,
        "Not a (complete or )?reduction block|neither a local complete block|affine binding|"
        "can not be blockized|loop starting with 0|region cover is not complete|"
        "is not a stage pipeline",
        "TVM takes bindings that count down or begin above 0 for not affine, and so for incomplete",
    ),
    Kind(
        "TVM refuses", "split", "factors are required to be positive",
        "TVM's sample_partitioned_tile samples -1 where nothing can be parted, which its split "
        "refuses; ours takes it for the factor that is left open",
    ),
    Kind(
        "TVM refuses", "transform_block_layout", "binding values .* are not variables",
        "TVM's cache_index computes an entry in each iteration of the block's outermost loop, and "
        "binds no iterator to a loop where loops were fused",
    ),
    Kind(
        "TVM refuses", "decompose_reduction", "all the loops related to reduce block var",
        "TVM takes a loop in a binding for one of the reduction, also where its only value is 0",
    ),
    Kind(
        "TVM refuses", "cache_read", "allowed to be written by single block",
        "TVM counts the reader, and a later block that overwrites what has been read",
    ),
    Kind(
        "TVM refuses", "reindex_cache_(read|write)", "not a single point",
        "TVM goes by the region that annotate_buffer_access has declared, not by the access",
    ),
    Kind(
        "TVM refuses", "transform_block_layout", "more than one type of original iter vars",
        "TVM knows no type of an iterator that stands for an opaque one",
    ),
    Kind(
        "TVM refuses", "storage_align|cache_inplace",
        "is not allocated by a block|does not both read & write",
        "TVM's copies stand in another order, so that the block is another one",
    ),
    Kind(
        "we refuse", "reorder", "not in a chain",
        "TVM's sample_compute_location knows no loops without blocks, and so moved none there",
    ),
    Kind(
        "we refuse", "set_scope", "is not allocated by a block",
        "the scope of a parameter is part of what the function is",
    ),
    Kind(
        "we refuse", ANY, "without declaring it|does not declare what it writes",
        "TVM believes declared regions, which need not be true",
    ),
    Kind(
        "we refuse", "compute_at", "is an output block",
        "to TVM a block has no output whose regions loop_partition or unsafe_hide_buffer_access "
        "left undeclared: it moves the block to where it may run more often, or not at all",
    ),
    Kind(
        "we refuse", ANY,
        "not bound to its loops one to one|does not start at 0|cannot be divided between|"
        "uses the loop variable",
        "right only because of the extents of these loops, or without effect",
    ),
    Kind(
        "we refuse", ANY,
        "is not a stage pipeline|enclose it|holds other statements|would not run as often|"
        "not the only writer|is neither complete",
        "right only where the statements around touch other elements",
    ),
    Kind(
        "we refuse", ANY,
        "in another iteration|of which iterations|keep their order|the init of block|"
        "drives the reduction iterator",
        "right only where the iterations happen not to depend on each other, or an init is done "
        "again without effect",
    ),
    Kind(
        "we refuse", "cache_inplace", "run at once|is not sure to write all of them",
        "right only where the iterations that run at once touch other elements, or what the copy "
        "does not hold is written all the same",
    ),
    Kind(
        "we refuse", "cache_write", "takes a buffer with a single writer",
        "right only where the other writers touch other elements",
    ),
    Kind(
        "we refuse", "cache_read",
        'statement .* outside of blocks.*; this takes a buffer with a single writer',
        "TVM does not see what is stored outside of blocks",
    ),
    Kind(
        "we refuse", "decompose_reduction", "repeats the whole|ties spatial and reduction loops",
        "right only because of the extents of these loops",
    ),
    Kind(
        "we refuse", "reindex.*|pad_einsum|write_at",
        "not a leaf block|without an iterator|not sure to write|known to stay in|is matched as",
        "right only where nothing looks at the elements in between, or each iterator has one value",
    ),
    Kind(
        "we refuse", "transform_layout", "has strides",
        "right only where the strides are those of a compact buffer, which needs none",
    ),
    Kind(
        "we refuse", "bind", "a thread has one index on an axis",
        "TVM's bind accepts extents that its build refuses",
    ),
    Kind(
        "we refuse", "compute_inline", "may leave out elements",
        "right only where nobody reads these elements, or they can be computed all the same",
    ),
    Kind(
        "we refuse", "pad_einsum", "not one store|at different indices|has a predicate|not spatial",
        "TVM pads blocks that are no sums of products, which is right only by chance",
    ),
    Kind(
        "we refuse", ANY,
        "that it updates|updates elements|also writes|are not a box|is not known to (write|lie)|"
        "the copy does not hold them",
        "right only where nobody reads the elements that the copy does not hold",
    ),
)  # fmt: skip


def reason(primitive: str, what: str, words: str) -> Kind | None:
    """The kind of a difference, if it is known."""
    for kind in KINDS:
        if (
            re.fullmatch(kind.what, what)
            and re.fullmatch(kind.primitives, primitive)
            and re.search(kind.words, words, re.DOTALL)
        ):
            return kind
    return None
