"""fuse_reduction_epilogue: sums that start from a term, and what is refused."""

import pytest

from tests.schedule.case_files import cases, check


@pytest.mark.parametrize("case", cases("reduction_epilogue.txt"), ids=lambda case: case.name)
def test_case(case):
    check(case)
