"""Numbers that TVM has names for: of data types, of conventions of calls, of effects."""

from enum import IntEnum


class DataTypeCode(IntEnum):
    """Kinds of data types, as DLPack numbers them."""

    INT = 0
    UINT = 1
    FLOAT = 2
    HANDLE = 3
    BFLOAT = 4
    BOOL = 6


class CallingConv(IntEnum):
    """How a function is called: the attribute `calling_conv`."""

    DEFAULT = 0
    C_PACKED_FUNC = 1
    DEVICE_KERNEL_LAUNCH = 2


class CallEffectKind(IntEnum):
    """What a call does beside giving a value: the attribute `TCallEffectKind` of an operator."""

    ExprAnnotation = 0
    Pure = 1
    ReadState = 2
    UpdateState = 3
    Opaque = UpdateState
    SpecialCallArg = 4
    EmbedInfo = 5
    ControlJump = 6
