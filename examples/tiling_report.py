"""Tiling a model's matrix multiplications by a pass of our own, and where the time goes then.

The model is the course's: two layers on an image of 28 x 28 points. It is run in four forms:

    baseline        every operator a function by itself
    fused           matrix multiplication and addition in one function
    tiled           the baseline with the loops of its matrix multiplications tiled
    tiled + fused   both

    python examples/tiling_report.py            # the four times
    python examples/tiling_report.py --calls    # and for each call where they come from

On one image a matrix multiplication has one row: tiles of 64 rows do nothing for it, and the
bounds that come with them cost a little. That is what the report is about: measure first.
"""

from __future__ import annotations

import argparse

import numpy as np

import mlcweb as tvm
from mlcweb import relax, topi

ROWS, INPUTS, HIDDEN, CLASSES = 1, 784, 128, 10
CLASS_NAMES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
    "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip


def parameters(seed: int = 0) -> dict[str, np.ndarray]:
    """Weights as a file of the course would hold them; here from a seed."""
    rng = np.random.default_rng(seed)
    shapes = {"w0": (HIDDEN, INPUTS), "b0": (HIDDEN,), "w1": (CLASSES, HIDDEN), "b1": (CLASSES,)}
    return {name: rng.uniform(-0.1, 0.1, shape).astype("float32") for name, shape in shapes.items()}


def image(seed: int = 1) -> np.ndarray:
    """Some image, its points from 0 to 1."""
    return np.random.default_rng(seed).uniform(0, 1, (ROWS, INPUTS)).astype("float32")


def create_model(params: dict[str, np.ndarray]) -> tvm.IRModule:
    """The model in operators."""
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((ROWS, INPUTS), "float32"))
    w0, b0, w1, b1 = (relax.const(params[name], "float32") for name in ("w0", "b0", "w1", "b1"))
    with bb.function("main", [x]):
        with bb.dataflow():
            lv0 = bb.emit(relax.op.matmul(x, relax.op.permute_dims(w0)))
            lv1 = bb.emit(relax.op.add(lv0, b0))
            lv2 = bb.emit(relax.op.nn.relu(lv1))
            lv3 = bb.emit(relax.op.matmul(lv2, relax.op.permute_dims(w1)))
            lv4 = bb.emit(relax.op.add(lv3, b1))
            gv = bb.emit_output(lv4)
        bb.emit_func_output(gv)
    return bb.get()


def is_call(value, op: str) -> bool:
    return isinstance(value, relax.Call) and value.op == tvm.ir.Op.get(op)


@relax.expr_functor.mutator
class MatmulAddFusor(relax.PyExprMutator):
    """Puts each addition to a matrix product into a function together with it."""

    def __init__(self, mod: tvm.IRModule) -> None:
        super().__init__(mod)
        self.mod_ = mod
        self.counter = 0

    def transform(self) -> tvm.IRModule:
        for global_var, func in self.mod_.functions.items():
            if isinstance(func, relax.Function) and not func.attrs.get("Primitive"):
                updated = relax.analysis.remove_all_unused(self.visit_expr(func))
                self.builder_.update_func(global_var, updated)
        return self.builder_.get()

    def visit_call_(self, call):
        call = self.visit_expr_post_order(call)
        if not is_call(call, "relax.add"):
            return call
        value = self.lookup_binding(call.args[0])
        if not is_call(value, "relax.matmul"):
            return call
        arguments = [*value.args, call.args[1]]
        x, w, b = (
            relax.Var(name, relax.TensorStructInfo(a.struct_info.shape, a.struct_info.dtype))
            for name, a in zip("xwb", arguments, strict=True)
        )
        bb = relax.BlockBuilder()
        name = f"fused_matmul_add{self.counter}"
        self.counter += 1
        with bb.function(name, [x, w, b]):
            with bb.dataflow():
                lv0 = bb.emit(relax.op.matmul(x, w))
                gv = bb.emit_output(relax.op.add(lv0, b))
            bb.emit_func_output(gv)
        fused = bb.get()[name].with_attr("Primitive", 1)
        return relax.Call(self.builder_.add_func(fused, name), arguments, None, None)


@tvm.ir.transform.module_pass(opt_level=2, name="MatmulAddFuse")
class FuseDenseAddPass:
    def transform_module(self, mod, ctx):
        return MatmulAddFusor(mod).transform()


OP_MAP = {
    "relax.matmul": lambda bb, call: bb.call_te(topi.nn.matmul, *call.args),
    "relax.add": lambda bb, call: bb.call_te(topi.add, *call.args),
    "relax.nn.relu": lambda bb, call: bb.call_te(topi.nn.relu, *call.args),
    "relax.permute_dims": lambda bb, call: bb.call_te(topi.transpose, call.args[0]),
}


@relax.expr_functor.mutator
class LowerToTensorIR(relax.PyExprMutator):
    """Makes functions of TensorIR of the operators."""

    def __init__(self, mod: tvm.IRModule) -> None:
        super().__init__(mod)
        self.mod_ = mod

    def visit_call_(self, call):
        call = self.visit_expr_post_order(call)
        lower = OP_MAP.get(getattr(call.op, "name", ""))
        return lower(self.builder_, call) if lower else call

    def transform(self) -> tvm.IRModule:
        for global_var, func in self.mod_.functions.items():
            if isinstance(func, relax.Function):
                self.builder_.update_func(global_var, self.visit_expr(func))
        return self.builder_.get()


@tvm.ir.transform.module_pass(opt_level=0, name="LowerToTensorIR")
class LowerToTensorIRPass:
    def transform_module(self, mod, ctx):
        return LowerToTensorIR(mod).transform()


def tile_matmul(sch, func_name, block_name, tile_i_factor, tile_j_factor):
    """Tile rows and columns of one matrix multiplication."""
    block = sch.get_block(block_name, func_name=func_name)
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, factors=[None, tile_i_factor])
    j0, j1 = sch.split(j, factors=[None, tile_j_factor])
    sch.reorder(i0, j0, i1, j1, k)
    return sch


def apply_tiling_pass(mod, tile_i_factor, tile_j_factor):
    """Tile all matrix multiplications of a module."""
    sch = tvm.tir.Schedule(mod)
    for gv in mod.functions:
        if isinstance(mod[gv], tvm.tir.PrimFunc):
            try:
                sch = tile_matmul(sch, gv.name_hint, "T_matmul_NN", tile_i_factor, tile_j_factor)
            except tvm.tir.schedule.ScheduleError:
                continue  # a function without such a block
    return sch.mod


@tvm.ir.transform.module_pass(opt_level=0)
class TilingPass:
    def __init__(self, tile_i_factor, tile_j_factor):
        self.tile_i_factor = tile_i_factor
        self.tile_j_factor = tile_j_factor

    def transform_module(self, mod, ctx):
        return apply_tiling_pass(mod, self.tile_i_factor, self.tile_j_factor)


def variants(params: dict[str, np.ndarray], tile: int = 64) -> dict[str, tvm.IRModule]:
    """The four forms of the model."""
    model = create_model(params)
    baseline = LowerToTensorIRPass()(model)
    lowered = LowerToTensorIRPass()(FuseDenseAddPass()(model))
    fused = relax.transform.FuseTIR()(lowered)
    tiling = TilingPass(tile, tile)
    with tvm.transform.PassContext(opt_level=3):
        return {
            "baseline": baseline,
            "fused": fused,
            "tiled": tiling(baseline),
            "tiled + fused": tiling(fused),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description="Four forms of one model, and their times.")
    parser.add_argument("--calls", action="store_true", help="show the time of each call")
    parser.add_argument("--tile", type=int, default=64, help="rows and columns of a tile")
    options = parser.parse_args()
    data = tvm.nd.array(image())
    rows = []
    for name, mod in variants(parameters(), options.tile).items():
        vm = relax.VirtualMachine(relax.build(mod, target="llvm"), tvm.cpu(), profile=True)
        predicted = CLASS_NAMES[int(np.argmax(vm["main"](data).numpy()))]
        report = vm.profile("main", data)
        if options.calls:
            print(f"{name}: {predicted}\n\n{report}\n")
        rows.append((name, report.total * 1e6, predicted))
    print(f"{'form':<16}{'total (us)':>12}   prediction")
    for name, microseconds, predicted in rows:
        print(f"{name:<16}{microseconds:>12.2f}   {predicted}")


if __name__ == "__main__":
    main()
