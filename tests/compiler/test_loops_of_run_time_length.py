"""`scan_first`, whose length is known at run time, and loops that settle by themselves."""

import numpy as np

import delassus as dl
import delassus.numpy as dnp
from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.tracing.flow.control import scan_first, while_loop


@dl.kernel("(),(6)->(),(6)")
def sum_first(model, count, values):
    """The sum of the first values, and twice these."""

    def add(carry, value):
        total, k = carry
        return (total + dnp.where(k < count, value, 0.0), k + 1.0), 2.0 * value

    (total, _), doubled = scan_first(count, add, (dnp.array(0.0), dnp.array(0.0)), values)
    return total, dnp.stack([dnp.where(count > float(k), doubled[k], 0.0) for k in range(6)])


@dl.kernel("()->()")
def halve_until_small(model, x):
    def halve(x):
        return dnp.where(x > 1.0, 0.5 * x, x)

    return while_loop(lambda x: x > 1.0, halve, x, 100, settles=True)


COUNTS, VALUES = np.array([0.0, 1.0, 4.0, 6.0, 9.0, 2.0, 3.0, 5.0, 1.0]), np.arange(1.0, 7.0)


def test_a_state_walks_along_its_own_first_items():
    total, doubled = sum_first(None, COUNTS, VALUES)
    np.testing.assert_array_equal(total, [VALUES[: int(k)].sum() for k in COUNTS])
    np.testing.assert_array_equal(doubled, [np.where(np.arange(6) < k, 2.0 * VALUES, 0.0) for k in COUNTS])


def test_it_is_the_same_alone_on_numbers_and_in_the_interpreter():
    program = sum_first.program(None)
    for count in COUNTS:
        total, doubled = sum_first.python(None, count, VALUES)
        np.testing.assert_array_equal(total, sum_first(None, count, VALUES)[0])
        np.testing.assert_array_equal(doubled, sum_first(None, count, VALUES)[1])
        np.testing.assert_array_equal(total, evaluate(program, np.array(count), VALUES)[0])


def test_states_that_have_settled_keep_their_bits():
    x = np.array([0.3, 7.0, 1e6, 1.0, 2.0, 5.5, 1e3, 0.1, 3.0])
    np.testing.assert_array_equal(halve_until_small(None, x), [halve_until_small(None, one) for one in x])
