"""Tags that say what kind of operation a tensor is; fusion reads them."""

ELEMWISE = "elemwise"
BROADCAST = "broadcast"
INJECTIVE = "injective"
COMM_REDUCE = "comm_reduce"
COMM_REDUCE_IDX = "comm_reduce_idx"
EINSUM = "einsum"


def is_broadcast(tag: str) -> bool:
    """Whether the axes of the result are those of the operands, in order."""
    return tag.startswith((ELEMWISE, BROADCAST))


def is_injective(tag: str) -> bool:
    """Whether each element is made of one element of an operand."""
    return is_broadcast(tag) or tag.startswith(INJECTIVE)
