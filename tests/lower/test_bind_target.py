"""The pass BindTarget, and targets in attributes: printed, read back, and compared."""

from mlcweb.ir import IRModule, assert_structural_equal, structural_equal, structural_hash
from mlcweb.lower.transform import BindTarget
from mlcweb.runtime.target import Target
from mlcweb.script import from_source


def function(attrs: str = "", private: bool = False):
    return from_source(f"""
@T.prim_func(private={private})
def main():
    T.func_attr({{{attrs}}})
    T.evaluate(0)
""")


def bound(target: Target, attrs: str = "", private: bool = False):
    return BindTarget(target)(IRModule.from_expr(function(attrs, private)))["main"]


def test_functions_that_say_no_target_get_it() -> None:
    target = Target("cuda", host="llvm")
    assert bound(Target("cuda")).attrs["target"] == Target("cuda")
    assert_structural_equal(bound(target), function('"target": T.target("cuda", host="llvm")'))
    # What nobody calls from outside has no use for a host.
    inside = function('"target": T.target("cuda")', private=True)
    assert_structural_equal(bound(target, private=True), inside)


def test_functions_that_say_it_keep_it_and_get_a_host() -> None:
    known = '"target": T.target("nvptx")'
    assert_structural_equal(bound(Target("cuda"), known), function(known))
    host = Target("cuda", host={"kind": "llvm", "opt-level": 0})
    assert_structural_equal(
        bound(host, known),
        function('"target": T.target("nvptx", host={"kind": "llvm", "opt-level": 0})'),
    )


def test_a_target_is_printed_as_it_is_read() -> None:
    func = bound(Target("cuda -arch=sm_80 -max_num_threads=512", host="llvm"))
    again = from_source(func.script())
    assert_structural_equal(func, again)
    assert structural_hash(func) == structural_hash(again)
    assert not structural_equal(func, bound(Target("cuda -arch=sm_80", host="llvm")))
    assert not structural_equal(func, bound(Target("cuda -arch=sm_80 -max_num_threads=512")))


def test_functions_of_the_host_get_the_host() -> None:
    host_function = '"tir.is_host_func": True'
    for private in (False, True):
        expected = function('"target": T.target("c", host="c")', private)
        target = Target("cuda", host="c")
        assert_structural_equal(bound(target, host_function, private), expected)
    of_llvm = bound(Target("cuda"), host_function).attrs
    assert of_llvm["target"] == Target("llvm", host="llvm") and "tir.is_host_func" not in of_llvm
