"""The table of elementary functions, and the three tables of machine operations."""

import numpy
import pytest

import delassus.numpy as np
from delassus.compiler import grad
from delassus.compiler.backends import c_text, interpreter
from delassus.compiler.backends.llvm import chunk
from delassus.compiler.functions import words
from delassus.compiler.functions.registry import FUNCTIONS, elementary
from delassus.compiler.graph.graph import ONE
from delassus.compiler.tracing.handlers import HANDLERS


@pytest.mark.parametrize("back_end", [chunk, c_text])
def test_every_back_end_has_the_machine_operations_of_the_interpreter(back_end):
    assert set(back_end.OPERATIONS) == set(interpreter.OPERATIONS)


def test_no_elementary_function_is_a_machine_operation_but_those_of_words():
    assert FUNCTIONS.keys() & interpreter.OPERATIONS.keys() == words.OPERATIONS.keys()


@pytest.mark.parametrize("name", [name for name, function in FUNCTIONS.items() if function.numpy is not None])
def test_an_elementary_function_is_traced_and_documented(name):
    function = FUNCTIONS[name].numpy
    assert function in HANDLERS
    assert f" {function.__name__}," in np.__doc__.replace("\n", ",\n")


def test_a_name_is_registered_once():
    with pytest.raises(ValueError, match="'hypot' is registered already"):
        elementary(numpy.hypot, partials=())(lambda g, x, y: x)


def test_the_number_of_partial_derivatives_is_that_of_the_arguments():
    with pytest.raises(ValueError, match=r"'logaddexp' has 2 argument.* and 1 partial"):
        elementary(numpy.logaddexp, partials=(lambda g, y, a, b: ONE,))(lambda g, a, b: a)


@pytest.fixture
def cube():
    """A function that one entry adds."""

    @elementary("cube", partials=(lambda g, y, x: g.mul(g.constant(3.0), g.mul(x, x)),))
    def expand(g, x):
        return g.mul(g.mul(x, x), x)

    yield lambda x: x.origin.map(lambda a: FUNCTIONS["cube"].build(x.origin.builder, a), x)
    del FUNCTIONS["cube"]


def test_one_entry_is_enough_to_compute_a_function_and_its_derivative(cube):
    def function(x):
        return np.sum(cube(x))

    x = numpy.array([0.5, -1.5])
    numpy.testing.assert_allclose(grad(function)(x), 3 * x**2, rtol=1e-15)
