"""Operations: what the elements of tensors are, as `placeholder`, `compute` and `extern` say."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from mlcweb.ir.array import Array, ArrayOf
from mlcweb.ir.node import Node, attribute, definition, node, reference
from mlcweb.ir.visitor import walk
from mlcweb.te.errors import ExpressionError
from mlcweb.te.tag import current_tag
from mlcweb.te.tensor import ProducerLoad, Tensor, TensorSlice
from mlcweb.tir import arithmetic
from mlcweb.tir import dtype as dtypes
from mlcweb.tir.buffer import Buffer, Range, decl_buffer
from mlcweb.tir.expr import PointerType, PrimExpr, Var
from mlcweb.tir.reduction import Reduce
from mlcweb.tir.stmt import Evaluate, IterVar, Stmt


@node
class Operation(Node):
    """Base of operations. `tag` and `attrs` are plain data for whoever looks for patterns."""

    name: str = attribute()
    tag: str = attribute(kw_only=True, default="")
    attrs: Mapping[str, Any] = attribute(kw_only=True, default_factory=dict)

    @property
    def num_outputs(self) -> int:
        return 1

    @property
    def input_tensors(self) -> Array[Tensor]:
        """The tensors that the operation reads, each once, in order of first use."""
        return Array()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"


@node
class PlaceholderOp(Operation):
    """A tensor that is given from outside."""

    shape: ArrayOf[PrimExpr]
    dtype: str = attribute()

    def output(self, index: int = 0) -> Tensor:
        return Tensor(self.shape, dtypes.DataType(self.dtype), self, index)


@node
class ComputeOp(Operation):
    """Elements by expressions: `body[k]` is the element of output `k` at the variables of `axis`.

    Either no body is a `Reduce`, or all are the values of one.
    """

    axis: ArrayOf[IterVar] = definition()
    body: ArrayOf[PrimExpr]

    @property
    def num_outputs(self) -> int:
        return len(self.body)

    @property
    def reduce_axis(self) -> Array[IterVar]:
        return body.axis if isinstance(body := self.body[0], Reduce) else Array()

    @property
    def input_tensors(self) -> Array[Tensor]:
        loads = (x for body in self.body for x in walk(body) if isinstance(x, ProducerLoad))
        return distinct(load.producer for load in loads)

    def output(self, index: int = 0) -> Tensor:
        extents = tuple(domain(axis).extent for axis in self.axis)
        return Tensor(extents, dtypes.DataType(self.body[index].dtype), self, index)


@node
class ExternOp(Operation):
    """Elements by a statement on buffers, such as a call of a library's function."""

    inputs: ArrayOf[Tensor] = reference()
    input_buffers: ArrayOf[Buffer] = reference()
    output_buffers: ArrayOf[Buffer] = reference()
    body: Stmt

    @property
    def num_outputs(self) -> int:
        return len(self.output_buffers)

    @property
    def input_tensors(self) -> Array[Tensor]:
        return distinct(self.inputs)

    def output(self, index: int = 0) -> Tensor:
        buffer = self.output_buffers[index]
        return Tensor(buffer.shape, dtypes.DataType(buffer.dtype), self, index)


def placeholder(shape: Any, dtype: str | None = None, name: str = "placeholder") -> Tensor:
    """A tensor, by default of float32, that is given from outside."""
    return PlaceholderOp(name, _extents(shape), dtypes.full_name(dtype or "float32")).output()


def compute(
    shape: Any,
    fcompute: Callable[..., Any],
    name: str = "compute",
    tag: str = "",
    attrs: Mapping[str, Any] | None = None,
    varargs_names: Sequence[str] | None = None,
) -> Any:
    """A tensor by the expression of its elements, or several by a tuple of expressions.

    Args:
        shape: the extents.
        fcompute: indices -> element(s). The loops get the names of its parameters; `*indices` are
            called i0, i1, … or as `varargs_names` says. It may take fewer indices than there are
            dimensions: then it does not depend on the last ones.

    Returns: the Tensor; a tuple of them where `fcompute` returns several expressions.
    """
    extents = _extents(shape)
    names, taken = _axis_names(fcompute, len(extents), varargs_names, name)
    axis = tuple(
        IterVar(Range(arithmetic.const(0, extent.dtype), extent), Var(axis_name, extent.dtype))
        for axis_name, extent in zip(names, extents, strict=True)
    )
    result = fcompute(*(iterator.var for iterator in axis[:taken]))
    several = isinstance(result, (tuple, list))
    body = tuple(_element(value, name) for value in (result if several else (result,)))
    if not body:
        raise ExpressionError(f'The function of te.compute "{name}" returned no expression')
    _check_reductions(body, name)
    operation = ComputeOp(name, axis, body, tag=tag or current_tag(), attrs=dict(attrs or {}))
    if not several:
        return operation.output()
    return tuple(operation.output(index) for index in range(len(body)))


def extern(
    shape: Any,
    inputs: Sequence[Tensor],
    fcompute: Callable[[list[Buffer], list[Buffer]], Any],
    name: str = "extern",
    dtype: str | Sequence[str] | None = None,
    in_buffers: Sequence[Buffer] | Buffer | None = None,
    out_buffers: Sequence[Buffer] | Buffer | None = None,
    tag: str = "",
    attrs: Mapping[str, Any] | None = None,
) -> Any:
    """Tensors that a statement computes, such as a call of an external function.

    Args:
        shape: one shape, or a list of shapes for several outputs.
        fcompute: (input buffers, output buffers) -> the statement, or the call.
        dtype: of the output(s); where it is left out, that of the inputs, if they agree.

    Returns: the Tensor, or a list of them where there are several.
    """
    several = bool(shape) and isinstance(shape[0], (tuple, list))
    shapes = [_extents(one) for one in (shape if several else (shape,))]
    ins = _buffers(in_buffers) or [
        decl_buffer(tensor.shape, tensor.dtype, tensor.op.name, offset_factor=1)
        for tensor in inputs
    ]
    outs = _buffers(out_buffers) or [
        decl_buffer(one, output_dtype, name, offset_factor=1)
        for one, output_dtype in zip(shapes, _dtypes(dtype, inputs, len(shapes), name), strict=True)
    ]
    if len(ins) != len(inputs) or len(outs) != len(shapes):
        raise ExpressionError(
            f'te.extern "{name}" has {len(inputs)} input(s) and {len(shapes)} output(s), but '
            f"{len(ins)} and {len(outs)} buffer(s) for them"
        )
    body = fcompute(list(ins), list(outs))
    if isinstance(body, PrimExpr):
        body = Evaluate(body)
    if not isinstance(body, Stmt):
        raise ExpressionError(
            f'The function of te.extern "{name}" gives a statement or a call, not '
            f"{type(body).__name__}"
        )
    operation = ExternOp(
        name,
        tuple(inputs),
        tuple(ins),
        tuple(outs),
        body,
        tag=tag or current_tag(),
        attrs=dict(attrs or {}),
    )
    outputs = [operation.output(index) for index in range(len(outs))]
    return outputs[0] if len(outputs) == 1 else outputs


def var(name: str = "tindex", dtype: str | PointerType = "int32", span: Any = None) -> Var:
    """A symbolic size or scalar, or a pointer to memory."""
    if isinstance(dtype, PointerType):
        return Var(name, "handle", dtype, span=span)
    return Var(name, dtypes.full_name(dtype), span=span)


def _extents(shape: Any) -> tuple[PrimExpr, ...]:
    # A shape of Relax is an expression with extents, and none itself.
    dims = shape if isinstance(shape, Iterable) else (shape,)
    return tuple(arithmetic.convert(extent) for extent in dims)


def _axis_names(
    fcompute: Callable[..., Any], count: int, varargs_names: Sequence[str] | None, name: str
) -> tuple[list[str], int]:
    """The names of the axes, and how many of them `fcompute` takes."""
    parameters = [
        p
        for p in inspect.signature(fcompute).parameters.values()
        if p.kind is not p.KEYWORD_ONLY or p.default is p.empty
    ]
    if any(p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD) for p in parameters):
        raise ExpressionError(f'The function of te.compute "{name}" takes indices by position only')
    names = [p.name for p in parameters if p.kind is not p.VAR_POSITIONAL]
    if len(names) > count:
        raise ExpressionError(
            f'te.compute "{name}": the shape has {count} dimension(s), but the function takes '
            f"{len(names)} indices ({', '.join(names)})"
        )
    rest = count - len(names)
    if len(names) == len(parameters):
        return names + [f"i{i}" for i in range(rest)], len(names)
    if varargs_names is not None and len(varargs_names) != rest:
        raise ExpressionError(
            f'te.compute "{name}": varargs_names has {len(varargs_names)} name(s) for {rest} axes'
        )
    return names + list(varargs_names or (f"i{i}" for i in range(rest))), count


def _element(value: Any, name: str) -> PrimExpr:
    if isinstance(value, Tensor):
        if value.ndim:
            raise ExpressionError(
                f'The function of te.compute "{name}" returned the tensor "{value.name}"; it '
                "returns an element of it: index it"
            )
        return value()
    if value is None:
        raise ExpressionError(f'The function of te.compute "{name}" returned nothing')
    if isinstance(value, TensorSlice):
        return value.asobject()
    return arithmetic.convert(value)


def _check_reductions(body: tuple[PrimExpr, ...], name: str) -> None:
    for value in body:
        inside = walk(value)
        if isinstance(value, Reduce):
            next(inside)
        if any(isinstance(part, Reduce) for part in inside):
            raise ExpressionError(
                f'te.compute "{name}": a reduction is only allowed as the whole element. Compute '
                "the reduction as a tensor of its own, and use its elements in a second te.compute"
            )
    combiners = {value.combiner for value in body if isinstance(value, Reduce)}
    if combiners and (len(combiners) > 1 or not all(isinstance(v, Reduce) for v in body)):
        raise ExpressionError(
            f'te.compute "{name}": several outputs are either all plain expressions, or the values '
            "of one reduction"
        )


def _buffers(buffers: Sequence[Buffer] | Buffer | None) -> list[Buffer]:
    if buffers is None:
        return []
    return [buffers] if isinstance(buffers, Buffer) else list(buffers)


def _dtypes(
    dtype: str | Sequence[str] | None, inputs: Sequence[Tensor], count: int, name: str
) -> list[str]:
    if dtype is None:
        input_dtypes = {tensor.dtype for tensor in inputs}
        if len(input_dtypes) != 1:
            raise ExpressionError(
                f'te.extern "{name}": the dtype of the output does not follow from its inputs; '
                "give dtype=…"
            )
        dtype = input_dtypes.pop()
    return [dtype] * count if isinstance(dtype, str) else list(dtype)


def domain(axis: IterVar) -> Range:
    assert axis.dom is not None
    return axis.dom


def distinct(tensors: Iterable[Tensor]) -> Array[Tensor]:
    distinct: dict[tuple[int, int], Tensor] = {}
    for tensor in tensors:
        distinct.setdefault((id(tensor.op), tensor.value_index), tensor)
    return Array(distinct.values())
