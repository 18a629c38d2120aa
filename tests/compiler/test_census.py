"""Kernels that are too large say which source lines make them so."""

import inspect
import warnings
from functools import partial

import pytest

import delassus as dl
import delassus.numpy as np
from delassus.compiler import jacobian
from delassus.compiler.tracing import census
from delassus.compiler.tracing.trace import builder_type


def costly(x):
    rows = []
    for k in range(2, 22):
        rows.append(sum(np.sin(x * k)))  # 3 products, 3 sines, 2 sums
    return rows


@dl.kernel("(3)->(20),()")
def large(model, x):
    rows = np.stack(costly(x))
    unused = np.exp(x)
    return rows, (unused * 0.0 + x) @ x


def line_of(function, text):
    lines, start = inspect.getsourcelines(function)
    return start + next(k for k, line in enumerate(lines) if text in line)


@pytest.fixture
def low_limit(monkeypatch):
    monkeypatch.setattr(census, "LIMIT", 100)


def fresh(kernel):
    """The same function as a kernel that has compiled nothing yet."""
    return type(kernel)(kernel.function, kernel.signature)


def test_a_large_kernel_names_the_line_with_most_operations_first(low_limit):
    with pytest.warns(dl.DelassusWarning, match="large has 165 operations") as caught:
        fresh(large).compiled(None)
    first, second = str(caught[0].message).splitlines()[1:3]
    assert first == f"  160 (97%) {__file__}:{line_of(costly, 'sum')} in costly"
    assert second.startswith("  5 (3%) ") and second.endswith("in large")


def test_the_warning_points_at_the_line_that_calls_the_kernel(low_limit):
    with pytest.warns(dl.DelassusWarning) as caught:
        fresh(large).compiled(None)
    assert caught[0].filename == __file__


def test_a_kernel_warns_once_for_a_model(low_limit):
    kernel = fresh(large)
    with pytest.warns(dl.DelassusWarning):
        kernel.compiled(None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel.compiled(None)


def test_every_operation_of_the_program_is_counted():
    program = large.program(None)
    assert census.census(partial(large.program, None)).total() == sum(program.count().values())


def test_operations_of_derivatives_count_for_the_line_that_asks_for_them():
    @dl.kernel("(3)->(3,3)")
    def derived(model, x):
        return jacobian(np.sin)(x)

    (line,) = census.census(partial(derived.program, None))
    assert line.number == line_of(derived.function, "jacobian")


def test_watching_ends_with_an_error_too():
    def fails():
        raise ZeroDivisionError

    before = builder_type.get()
    with pytest.raises(ZeroDivisionError):
        census.census(fails)
    assert builder_type.get() is before


def test_an_ordinary_kernel_does_not_warn():
    fresh(large).compiled(None)
