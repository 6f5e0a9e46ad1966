"""What garbage collection leaves alone during a search."""

import gc

import pytest

from mlcweb.meta_schedule.utils import gc_frozen


def test_what_existed_is_left_alone_until_the_end() -> None:
    before = gc.get_freeze_count()
    with gc_frozen():
        assert gc.get_freeze_count() > before
    assert gc.get_freeze_count() == 0


def test_it_ends_with_an_error_too() -> None:
    with pytest.raises(ValueError, match="no"), gc_frozen():
        raise ValueError("no")
    assert gc.get_freeze_count() == 0


def test_young_objects_are_looked_at_less_often_until_the_end() -> None:
    of_tests = gc.get_threshold()
    before = 700, 10, 10
    gc.set_threshold(*before)
    try:
        with gc_frozen():
            within = gc.get_threshold()
            with gc_frozen():
                assert gc.get_threshold() == within
            assert gc.get_threshold() == within
        assert within[0] >= 10 * before[0]
        assert gc.get_threshold() == before
    finally:
        gc.set_threshold(*of_tests)


def test_garbage_made_within_is_collected() -> None:
    class Ring:
        def __init__(self) -> None:
            self.own = self

    with gc_frozen():
        Ring()
        gc.collect()
        assert not any(isinstance(each, Ring) for each in gc.get_objects())
