"""Passes, sequences of them, and the instruments that hear of them."""

import pytest

from mlcweb.ir import IRModule, TVMError
from mlcweb.ir.instrument import (
    PassRecorder,
    PassTimingInstrument,
    PrintAfterAll,
    PrintBeforeAll,
    pass_instrument,
)  # fmt: skip
from mlcweb.ir.transform import ModulePass, PassContext, Sequential, module_pass


@module_pass(opt_level=1)
def first(mod, ctx):
    return mod.with_attr("steps", (*(mod.get_attr("steps") or ()), "first"))


@module_pass(opt_level=0, name="Second")
class Second:
    """Adds a step."""

    def __init__(self, times=1):
        self.times = times

    def transform_module(self, mod, ctx):
        steps = (*(mod.get_attr("steps") or ()), *["second"] * self.times)
        return mod.with_attr("steps", steps)


def steps(mod):
    return mod.get_attr("steps")


def test_passes_of_functions_and_classes():
    assert steps(first(IRModule())) == ("first",)
    assert first.info.name == "first"
    second = Second(times=2)
    assert isinstance(second, ModulePass)
    assert second.times == 2
    assert second.info.name == "Second"
    assert steps(second(first(IRModule()))) == ("first", "second", "second")
    assert Second.__doc__ == "Adds a step."


def test_sequences_leave_out_what_is_not_enabled():
    both = Sequential([first, Second()], name="both")
    assert steps(both(IRModule())) == ("first", "second")
    with PassContext(opt_level=0):
        assert steps(both(IRModule())) == ("second",)
    with PassContext(opt_level=0, required_pass=["first"]):
        assert steps(both(IRModule())) == ("first", "second")
    with PassContext(disabled_pass=["Second"]):
        assert steps(both(IRModule())) == ("first",)
    assert steps(Sequential([both, both])(IRModule())) == ("first", "second") * 2


def test_misuse_is_explained():
    with pytest.raises(TVMError, match="transforms an IRModule"):
        first(3)
    with pytest.raises(TVMError, match="gave no IRModule"):
        module_pass(lambda mod, ctx: None, opt_level=0, name="nothing")(IRModule())
    with pytest.raises(TVMError, match="Sequential takes passes"):
        Sequential([print])
    with pytest.raises(TVMError, match="opt_level"):
        module_pass()
    with pytest.raises(TVMError, match="needs a method transform_module"):
        module_pass(opt_level=0)(int)
    with pytest.raises(TVMError, match="hears of nothing"):
        pass_instrument(int)


def test_instruments_hear_in_order_and_may_skip():
    heard = []

    @pass_instrument
    class Ear:
        def enter_pass_ctx(self):
            heard.append("enter")

        def exit_pass_ctx(self):
            heard.append("exit")

        def should_run(self, mod, info):
            return info.name != "Second"

        def run_before_pass(self, mod, info):
            heard.append(f"before {info.name}")

        def run_after_pass(self, mod, info):
            heard.append(f"after {info.name} {steps(mod)}")

    with PassContext(instruments=[Ear()]):
        result = Sequential([first, Second()])(IRModule())
    assert steps(result) == ("first",)
    assert heard == ["enter", "before first", "after first ('first',)", "exit"]


def test_recorded_and_timed():
    ticks = iter(range(100))
    recorder = PassRecorder(clock=lambda: float(next(ticks)))
    timer = PassTimingInstrument(clock=lambda: float(next(ticks)))
    nested = module_pass(lambda mod, ctx: first(mod), opt_level=0, name="outer")
    with PassContext(instruments=[recorder]):
        nested(IRModule())
    (run,) = recorder.runs
    assert [(depth, found.name, found.seconds) for depth, found in run.walk()] == [
        (0, "outer", 3.0), (1, "first", 1.0),
    ]  # fmt: skip
    assert steps(run.before) is None and steps(run.after) == ("first",)
    with PassContext(instruments=[timer]):
        nested(IRModule())
        Second()(IRModule())
        text = timer.render()
    assert text.splitlines() == [
        "outer: 3000000us [2000000us] (75.00%)",
        "  first: 1000000us [1000000us] (25.00%)",
        "Second: 1000000us [1000000us] (25.00%)",
    ]
    assert timer.render() == ""


def test_printing(capsys):
    with PassContext(instruments=[PrintBeforeAll(), PrintAfterAll()]):
        first(IRModule())
    lines = capsys.readouterr().out.splitlines()
    about = "The meta data of the pass - pass name: first, opt_level: 1"
    assert f"Before Running Pass: {about}" in lines
    assert f"After Running Pass: {about}" in lines


def test_instruments_can_be_exchanged():
    recorder = PassRecorder()
    with PassContext() as context:
        context.override_instruments([recorder])
        first(IRModule())
    assert [run.name for run in recorder.runs] == ["first"]


def test_what_is_no_module_is_a_type_error():
    for run, argument in ((lambda mod, ctx: mod, 3), (lambda mod, ctx: 3, IRModule())):
        with pytest.raises(TypeError, match="IRModule"):
            module_pass(run, opt_level=0)(argument)
