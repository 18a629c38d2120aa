"""Guards: kernels are traced to the programs that are on record. See `golden_kernels` for how to write them anew."""

import pytest

from golden_kernels import BOUNDED, EXACT, GROWTH, recorded

RECORD = recorded()
SMOKE = (" quadruped", " four_bar", " arm7, reduced")
"""What the names end in of kernels that `make smoke` traces, too."""


def some_in_smoke(names):
    """Names as parameters; those that end in `SMOKE` are smoke tests."""
    return [pytest.param(name, marks=[pytest.mark.smoke] * name.endswith(SMOKE)) for name in names]


@pytest.mark.parametrize("name", some_in_smoke(EXACT))
def test_the_program_of_a_kernel_is_the_recorded_one(name):
    assert EXACT[name].golden() == RECORD[name]


@pytest.mark.parametrize("name", some_in_smoke(BOUNDED))
def test_a_kernel_has_hardly_more_operations_than_recorded(name):
    assert BOUNDED[name].golden().operations <= (1.0 + GROWTH) * RECORD[name].operations


def test_every_recorded_kernel_is_traced():
    assert set(RECORD) == {*EXACT, *BOUNDED}
