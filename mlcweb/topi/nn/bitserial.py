"""Products of small integers, bit by bit: a word holds the same bit of many of them (Cowan et al.,
"Automatic Generation of High-Performance Quantized Machine Learning Kernels", 2020)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from mlcweb.ir.errors import DiagnosticError
from mlcweb.te.operation import compute
from mlcweb.te.tensor import Tensor
from mlcweb.tir import arithmetic, intrinsics, reducers
from mlcweb.tir.expr import PrimExpr
from mlcweb.tir.reduction import reduce_axis
from mlcweb.topi import shapes
from mlcweb.topi.nn.pad import pad
from mlcweb.topi.shapes import Padding
from mlcweb.topi.transform import concatenate
from mlcweb.topi.utils import get_pad_tuple

WORDS = {f"uint{width}": width for width in (8, 16, 32, 64)}
MAX_BITS = 8


def bitpack(
    data: Tensor, bits: int, pack_axis: int, bit_axis: int, pack_type: str,
    name: str = "QuantizeInput",
) -> Tensor:  # fmt: skip
    """The lowest `bits` bits of integers, each in a word of its own.

    Args:
        pack_axis: of `data`; its elements are packed, the first into the highest bit of a word.
        bit_axis: of the result; it counts the bits, from the lowest.
        pack_type: the type of words: uint8, uint16, uint32 or uint64.
    """
    if pack_type not in WORDS:
        raise DiagnosticError(f"bitpack: words are {', '.join(WORDS)}, not {pack_type}")
    if not 1 <= bits <= MAX_BITS:
        raise DiagnosticError(f"bitpack: the number of bits is 1 to {MAX_BITS}, not {bits}")
    place = shapes.axis_of("bitpack", pack_axis, data.ndim)
    width = WORDS[pack_type]
    packed = list(data.shape)
    packed[place] = words(f"bitpack of {bits} bit(s)", packed[place], width)
    packed.insert(bit_axis, arithmetic.const(1, packed[place].dtype))

    def element(*index: PrimExpr) -> tuple[PrimExpr, ...]:
        inside = [*index[:bit_axis], *index[bit_axis + 1 :]]

        def value(k: int) -> PrimExpr:
            return data(*inside[:place], inside[place] * width + k, *inside[place + 1 :])

        def bit(k: int, n: int) -> PrimExpr:
            number = value(k)
            masked = arithmetic.bitwise_and(number, arithmetic.const(1 << n, number.dtype))
            return arithmetic.cast(pack_type, arithmetic.shift_right(masked, n))

        return tuple(word([bit(k, n) for k in range(width)]) for n in range(bits))

    planes = compute(packed, element, name, tag="bitpack")
    return concatenate(planes, bit_axis) if bits > 1 else planes[0]


def words(operator: str, extent: PrimExpr, width: int) -> PrimExpr:
    """How many words of a width hold the bits along an axis; an error where they are no number."""
    number = shapes.constant(extent)
    if number is None or number % width:
        raise DiagnosticError(
            f"{operator}: the packed axis has a multiple of {width} elements, not {extent}"
        )
    return arithmetic.const(number // width, extent.dtype)


def word(bits: Sequence[PrimExpr]) -> PrimExpr:
    """The word of bits, the first one the highest."""
    return reduce(
        lambda high, bit: arithmetic.bitwise_or(arithmetic.shift_left(high, 1), bit), bits
    )


def bitserial_dense(
    data: Tensor, weight: Tensor, data_bits: int, weight_bits: int, pack_dtype: str = "uint32",
    out_dtype: str = "int16", unipolar: bool = True,
) -> Tensor:  # fmt: skip
    """data (batch, in) times weight (out, in), or packed (out, bits, in // width), bit by bit.

    Args:
        unipolar: takes the bits of the weight as 1 and -1, instead of 1 and 0.
    """
    left = bitpack(data, data_bits, 1, 1, pack_dtype)
    right = bitpack(weight, weight_bits, 1, 1, pack_dtype) if weight.ndim == 2 else weight
    shapes.need_rank("bitserial_dense", right, 3, "(out, bits, in // width)")
    k, of_data, of_weight = (
        reduce_axis((0, extent), name)
        for extent, name in ((left.shape[2], "k"), (left.shape[1], "db"), (right.shape[1], "wb"))
    )
    product = _product(unipolar)

    def element(i: PrimExpr, j: PrimExpr) -> PrimExpr:
        ones = product(left(i, of_data.var, k.var), right(j, of_weight.var, k.var))
        weighted = _shifted(arithmetic.cast(out_dtype, ones), of_data.var + of_weight.var)
        return reducers.sum(weighted, [of_weight, of_data, k])

    tag = "bitserial_dense_unipolar" if unipolar else "bitserial_dense"
    return compute((left.shape[0], right.shape[0]), element, tag=tag)


def bitserial_conv2d_nchw(
    data: Tensor, kernel: Tensor, stride: int | Sequence[int], padding: Padding,
    activation_bits: int, weight_bits: int, pack_dtype: str = "uint32", out_dtype: str = "int16",
    unipolar: bool = True,
) -> Tensor:  # fmt: skip
    """A convolution of an image NCHW by a kernel OIHW, or a packed one (filters, channels // width,
    height, width, bits), bit by bit: see `bitserial_dense`."""
    image = bitpack(data, activation_bits, 1, 2, pack_dtype)
    filters = bitpack(kernel, weight_bits, 1, 4, pack_dtype) if kernel.ndim == 4 else kernel
    return _convolution(
        "nchw", image, filters, "NCBHW", "OIHWB", stride, padding, out_dtype, unipolar
    )


def bitserial_conv2d_nhwc(
    data: Tensor, kernel: Tensor, stride: int | Sequence[int], padding: Padding,
    activation_bits: int, weight_bits: int, pack_dtype: str = "uint32", out_dtype: str = "int16",
    unipolar: bool = True,
) -> Tensor:  # fmt: skip
    """A convolution of an image NHWC by a kernel HWIO, bit by bit: see `bitserial_dense`."""
    image = bitpack(data, activation_bits, 3, 4, pack_dtype)
    filters = bitpack(kernel, weight_bits, 2, 4, pack_dtype) if kernel.ndim == 4 else kernel
    return _convolution(
        "nhwc", image, filters, "NHWCB", "HWIOB", stride, padding, out_dtype, unipolar
    )


def _convolution(
    layout: str, data: Tensor, kernel: Tensor, letters: str, kernel_letters: str,
    stride: int | Sequence[int], padding: Padding, out_dtype: str, unipolar: bool,
) -> Tensor:  # fmt: skip
    """Of packed operands, whose axes the letters name; B counts bits."""
    shapes.need_rank(f"bitserial_conv2d_{layout}", kernel, 5, kernel_letters)
    image = dict(zip(letters, data.shape, strict=True))
    window = dict(zip(kernel_letters, kernel.shape, strict=True))
    steps = [stride] * 2 if isinstance(stride, int) else list(stride)
    top, left, bottom, right = get_pad_tuple(padding, [window["H"], window["W"]])
    before, after = ({"H": top, "W": left}, {"H": bottom, "W": right})
    padded = pad(
        data,
        [before.get(letter, 0) for letter in letters],
        [after.get(letter, 0) for letter in letters],
        name="pad_temp",
    )
    for letter, step in zip("HW", steps, strict=True):
        room = image[letter] + (before[letter] + after[letter]) - window[letter]
        image[letter] = shapes.simplified(room // step + 1)
    image["C"] = window["O"]
    channel, row, column, of_data, of_weight = (
        reduce_axis((0, extent), name)
        for extent, name in (
            (window["I"], "rc"),
            (window["H"], "ry"),
            (window["W"], "rx"),
            (data.shape[letters.index("B")], "b1"),
            (window["B"], "b2"),
        )
    )
    product = _product(unipolar)

    def element(*index: PrimExpr) -> PrimExpr:
        at = dict(zip(layout.upper(), index, strict=True))
        pixel = {
            "N": at["N"],
            "C": channel.var,
            "H": at["H"] * steps[0] + row.var,
            "W": at["W"] * steps[1] + column.var,
            "B": of_data.var,
        }
        tap = {"O": at["C"], "I": channel.var, "H": row.var, "W": column.var, "B": of_weight.var}
        ones = product(
            padded(*(pixel[letter] for letter in letters)),
            kernel(*(tap[letter] for letter in kernel_letters)),
        )
        value = arithmetic.cast(out_dtype, _shifted(ones, of_data.var + of_weight.var))
        return reducers.sum(value, [channel, row, column, of_weight, of_data])

    shape = [image[letter] for letter in layout.upper()]
    return compute(shape, element, "Conv2dOutput", tag=f"bitserial_conv2d_{layout}")


def _product(unipolar: bool) -> Callable[[PrimExpr, PrimExpr], PrimExpr]:
    """The sum of the products of the bits of two words."""

    def ones(data: PrimExpr, weight: PrimExpr) -> PrimExpr:
        return intrinsics.call(data.dtype, "popcount", arithmetic.bitwise_and(data, weight))

    if not unipolar:
        return ones
    return lambda data, weight: ones(data, weight) - ones(data, arithmetic.bitwise_not(weight))


def _shifted(value: PrimExpr, places: PrimExpr) -> PrimExpr:
    return arithmetic.shift_left(value, arithmetic.cast(value.dtype, places))
