"""Random programs: the interpreter against NumPy on plain floats, within a bound on the errors of both."""

import math
import sys

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.graph.program import Operand
from delassus.compiler.tracing.record import record
from how_many import examples
from programs import COMPARISON, LOGIC, OPERATIONS, programs

UNIT = 4 * sys.float_info.epsilon
"""What each operation may add to the error, relative to its value."""

POINTS = 6


def bound(operation, value, values, errors):
    """A bound on the error of an operation whose arguments have these values and errors, to first order and more."""
    a, da = abs(values[0]), errors[0]
    if operation in ("add", "sub"):
        spread = da + errors[1]
    elif operation == "mul":
        b, db = abs(values[1]), errors[1]
        spread = a * db + b * da + da * db
    elif operation == "square":
        spread = 2 * a * da + da * da
    elif operation == "div":
        b, db = abs(values[1]), errors[1]
        spread = (da + abs(value) * db) / (b - db) if b > db else math.inf
    elif operation == "sqrt":
        spread = 0.0 if da == 0.0 else da / (2 * math.sqrt(values[0] - da)) if values[0] > da else math.inf
    elif operation in ("min", "max"):
        spread = max(da, errors[1])
    elif operation in ("sin", "cos"):
        spread = da if a + da <= 1e6 else math.inf
    elif operation == "arctan":
        spread = da
    elif operation == "arctan2":
        db, distance = errors[1], math.hypot(*values) - da - errors[1]
        on_the_cut = a <= da and values[1] <= db  # where the angle jumps, and depends on the sign of zero
        spread = math.inf if on_the_cut or distance <= 0.0 else (da + db) / distance
    else:  # neg, abs: exact
        return da
    exact = operation in ("min", "max")
    return spread if exact else spread + UNIT * abs(value) + sys.float_info.min


def judge(program, x):
    """The results of a program at a point by NumPy, and a bound on the error of each.

    The bound is infinite if a comparison that counts is closer than the errors of what it compares, or if a value on
    the way is not finite: then there is nothing to judge.
    """
    values = [numpy.float64(v) for v in (*x, *program.constants)]
    errors = [0.0] * len(values)
    for step in program.steps:
        arguments, spreads = [values[a] for a in step.arguments], [errors[a] for a in step.arguments]
        value = OPERATIONS[step.operation](*arguments)
        if step.operation in COMPARISON:
            spread = sum(spreads)
            error = 0.0 if spread == 0.0 or abs(arguments[0] - arguments[1]) > spread else math.inf
        elif step.operation in LOGIC:
            error = max(spreads)
        elif step.operation == "where":
            error = spreads[0] + (spreads[1] if arguments[0] else spreads[2])
        else:
            error = bound(step.operation, value, arguments, spreads)
        values.append(value)
        errors.append(error if math.isfinite(error) and math.isfinite(value) else math.inf)
    return [values[r] for r in program.results], [errors[r] for r in program.results]


def traced(program):
    return record("random", program.function, (Operand("x", (program.inputs,)),), (Operand("y", (program.outputs,)),))


def points(program, seed):
    rng = numpy.random.default_rng(seed)
    x = rng.normal(size=(POINTS, program.inputs)) * rng.choice([0.01, 1.0, 100.0], size=(POINTS, program.inputs))
    x[0] = rng.integers(-2, 3, size=program.inputs)
    return x


MANY = settings(max_examples=examples(250), deadline=None, suppress_health_check=[HealthCheck.too_slow])
FEW = settings(MANY, max_examples=examples(60))
SEEDS = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("fma", [True, False], ids=["fused", "unfused"])
def test_random_programs_give_the_numbers_of_numpy(fma):
    results, judged = 0, 0

    @MANY
    @given(programs(), SEEDS)
    def check(program, seed):
        nonlocal results, judged
        x = points(program, seed)
        (got,) = evaluate(traced(program), x, fma=fma)
        with numpy.errstate(all="ignore"):
            for state, computed in zip(x, got, strict=True):
                results += program.outputs
                for c, v, error in zip(computed, *judge(program, state), strict=True):
                    if math.isfinite(error):
                        assert abs(c - v) <= 2 * error, f"at {state}"
                        judged += error <= 1e-9 * (1.0 + abs(v))

    check()
    assert judged > results / 2, "too few results have a bound that tells anything"


@FEW
@given(programs(), SEEDS)
def test_a_batch_has_the_bits_of_its_states_one_by_one(program, seed):
    x, compiled = points(program, seed), traced(program)
    (batch,) = evaluate(compiled, x)
    numpy.testing.assert_array_equal(batch, [evaluate(compiled, state)[0] for state in x])


@FEW
@given(programs())
def test_the_same_random_program_traced_again_has_the_same_digest(program):
    assert traced(program).digest == traced(program).digest
