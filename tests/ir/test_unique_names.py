"""`UniqueNameSupply`; the answers are TVM's."""

from mlcweb.ir.names import UniqueNameSupply


def test_names_with_a_prefix():
    supply = UniqueNameSupply("p")
    assert [
        supply.fresh_name("x"),
        supply.fresh_name("x"),
        supply.fresh_name("x", add_prefix=False),
        supply.fresh_name("x", add_underscore=False),
        supply.reserve_name("y"),
        supply.contains_name("y"),
        supply.contains_name("z"),
        supply.fresh_name("y"),
        supply.fresh_name("x_1", add_prefix=False),
        supply.fresh_name("a.b c", add_prefix=False),
        supply.fresh_name(""),
    ] == ["p_x", "p_x_1", "x", "p_x2", "p_y", True, False, "p_y_1", "x_1", "a_b c", "p_v"]


def test_names_without_a_prefix():
    supply = UniqueNameSupply()
    names = [supply.fresh_name(name) for name in ("x", "x", "x_1", "x1", "x1")]
    assert names == ["x", "x_1", "x_1_1", "x1", "x1_1"]
    assert [supply.reserve_name("w"), supply.fresh_name("w")] == ["w", "w_1"]
