"""`np.add_at` with traced indices: NumPy's `np.add.at`, nothing outside, and the same bits everywhere."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import delassus as dl
import delassus.numpy as dnp
from delassus.compiler import jacobian, jvp, scan, vjp
from delassus.compiler.backends.interpreter import evaluate
from delassus.compiler.backends.schedule import schedule
from delassus.compiler.backends.steps import LoopStep, count_operations
from delassus.compiler.functions.lower import lower
from delassus.compiler.tracing.operations.gather import FEW
from how_many import examples
from native_bits import FULL, HOST, WIDTHS, check, numbers

RNG = np.random.default_rng(8)
INDICES = np.array([0.0, 1.0, 2.7, 7.999, 8.0, 11.0, 12.0, 1e30, -1.0, -0.5, np.nan, np.inf, -np.inf, 2.0**31])


def added(array, index, values):
    """What NumPy gives for one state: indices outside are left out."""
    total, index = np.array(array), np.asarray(index)
    inside = (index >= 0.0) & (index < len(total))
    np.add.at(total, index[inside].astype(int), np.broadcast_to(values, index.shape + total.shape[1:])[inside])
    return total


# --- what it means --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 3, FEW, FEW + 1, 12])
def test_a_row_is_added_where_the_index_says_or_nowhere(rows):
    x, y = RNG.normal(size=(rows, 2)), RNG.normal(size=2)
    f = dl.kernel(f"({rows},2),(),(2)->({rows},2)")(lambda model, x, i, y: dnp.add_at(x, i, y))
    (got,) = evaluate(f.program(None), x, INDICES, y)
    np.testing.assert_array_equal(got, [added(x, i, y) for i in INDICES])


def test_plain_code_adds_what_compiled_code_adds():
    f = dl.kernel("(12,3),(14),(14,3)->(12,3)")(lambda model, x, i, y: dnp.add_at(x, i, y))
    x, y = RNG.normal(size=(12, 3)), RNG.normal(size=(14, 3))
    np.testing.assert_array_equal(f.python(None, x, INDICES, y), added(x, INDICES, y))
    np.testing.assert_array_equal(evaluate(f.program(None), x, INDICES, y)[0], added(x, INDICES, y))


def test_a_row_that_comes_twice_gets_both():
    f = dl.kernel("(12),(3)->(12)")(lambda model, x, i: dnp.add_at(x, i, np.array([1.0, 10.0, 100.0])))
    (got,) = evaluate(f.program(None), np.zeros(12), [4.0, 4.0, 9.0])
    np.testing.assert_array_equal(got, 11.0 * np.eye(12)[4] + 100.0 * np.eye(12)[9])


def test_the_array_itself_stays_as_it_is():
    f = dl.kernel("(12),()->(12),(12)")(lambda model, x, i: (dnp.add_at(x, i, 1.0), x))
    new, old = evaluate(f.program(None), np.zeros(12), 3.0)
    assert new.sum() == 1.0 and not old.any()


def test_values_that_do_not_fit_are_refused():
    f = dl.kernel("(12,2),()->(12,2)")(lambda model, x, i: dnp.add_at(x, i, np.zeros(3)))
    with pytest.raises(ValueError, match=r"shape \(3,\)|broadcast"):
        f.program(None)


def test_numpys_own_spelling_says_what_to_use():
    f = dl.kernel("(12),()->(12)")(lambda model, x, i: np.add.at(x, i, 1.0))
    with pytest.raises(TypeError, match=r"np\.add_at"):
        f.program(None)


# --- the same bits --------------------------------------------------------------------------------------------------


STATEMENTS = st.tuples(
    st.sampled_from(["add", "take", "swap", "sum", "keep"]), st.integers(0, 2), st.integers(0, 3), st.integers(-2, 12)
)


@settings(max_examples=examples(60))
@given(
    inner=st.lists(STATEMENTS, min_size=1, max_size=7),
    count=st.integers(1, 4),
    lanes=st.sampled_from(WIDTHS),
    chunk=st.sampled_from([1, 3, 400]),
    host=st.sampled_from([HOST, FULL]),
    seed=st.integers(0, 99),
)
def test_random_bodies_have_the_bits_of_the_interpreter(inner, count, lanes, chunk, host, seed):
    """Three carried arrays and four numbers, changed in any order; the array of NumPy is the same, but for fusing."""

    def body(carry, item):
        arrays, values = list(carry[0]), [*carry[1], item]
        kept = item
        for kind, a, v, offset in inner:
            if kind == "add":
                arrays[a] = dnp.add_at(arrays[a], values[v] + offset, values[v - 1])
            elif kind == "take":
                values[v] = dnp.take(arrays[a], values[v] + offset)
            elif kind == "swap":
                arrays[a], arrays[a - 1] = arrays[a - 1], arrays[a]
            elif kind == "sum":
                values[v] = dnp.sum(arrays[a][2:5]) * 0.25
            else:
                kept = kept + arrays[a][offset % 10]
        return (tuple(arrays), tuple(values[:3])), kept

    def f(model, x):
        start = ((x, 2.0 * x, dnp.zeros(10)), (x[0], x[1], x[2]))
        (arrays, values), kept = scan(body, start, dnp.arange(float(count)) + x[3])
        return dnp.concatenate([*arrays, dnp.stack(values), kept])

    kernel = dl.kernel(f"(10)->({33 + count})")(f)
    check(kernel, lanes, numbers(19, 10, seed=seed), chunk=chunk, host=host)


# --- a sweep over contacts ------------------------------------------------------------------------------------------


def sweep(model, velocity, inverse_mass, first, second, frame, friction, start):
    """One Gauss–Seidel sweep over contacts between two bodies each, given by index tables: velocities, impulses."""

    def contact(v, item):
        i, j, R, mu, before = item
        w = dnp.take(inverse_mass, i) + dnp.take(inverse_mass, j)
        relative = R @ (dnp.take(v, j, axis=0) - dnp.take(v, i, axis=0))
        wanted = before - relative / w
        normal = dnp.maximum(wanted[2], 0.0)
        size = dnp.sqrt(wanted[0] ** 2 + wanted[1] ** 2 + 1e-300)
        share = dnp.minimum(1.0, mu * normal / size)
        impulse = dnp.stack([share * wanted[0], share * wanted[1], normal])
        push = R.T @ (impulse - before)
        v = dnp.add_at(v, i, -push * dnp.take(inverse_mass, i))
        return dnp.add_at(v, j, push * dnp.take(inverse_mass, j)), impulse

    return scan(contact, velocity, (first, second, frame, friction, start))


def sweep_kernel(contacts, bodies=50):
    sizes = f"({bodies},3),({bodies}),({contacts}),({contacts}),({contacts},3,3),({contacts}),({contacts},3)"
    return dl.kernel(f"{sizes}->({bodies},3),({contacts},3)")(sweep)


def problem(contacts, bodies=50, count=5):
    rng = np.random.default_rng(1)
    pairs = np.array([[rng.choice(bodies, 2, replace=False) for _ in range(contacts)] for _ in range(count)], float)
    frames = np.linalg.qr(rng.normal(size=(count, contacts, 3, 3)))[0]
    masses = rng.uniform(0.1, 1.0, (count, bodies))
    return (
        rng.normal(size=(count, bodies, 3)),
        masses,
        pairs[..., 0],
        pairs[..., 1],
        frames,
        rng.uniform(0.0, 1.0, (count, contacts)),
        rng.uniform(0.0, 0.1, (count, contacts, 3)),
    )


def numpy_sweep(v, inverse_mass, first, second, frame, friction, start):
    v, impulses = v.copy(), start.copy()
    for k, (i, j) in enumerate(zip(first.astype(int), second.astype(int), strict=True)):
        wanted = start[k] - frame[k] @ (v[j] - v[i]) / (inverse_mass[i] + inverse_mass[j])
        impulses[k, 2] = max(wanted[2], 0.0)
        size = np.hypot(*wanted[:2])
        impulses[k, :2] = wanted[:2] * min(1.0, friction[k] * impulses[k, 2] / size)
        push = frame[k].T @ (impulses[k] - start[k])
        v[i] -= push * inverse_mass[i]
        v[j] += push * inverse_mass[j]
    return v, impulses


def test_a_compiled_sweep_over_a_hundred_contacts_of_fifty_bodies_is_that_of_numpy():
    arrays = problem(100)
    begin = time.process_time()
    kernel = sweep_kernel(100)
    velocity, impulses = kernel(None, *arrays)
    assert time.process_time() - begin < 2.0
    for k in range(len(velocity)):
        right = numpy_sweep(*(x[k] for x in arrays))
        np.testing.assert_allclose(velocity[k], right[0], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(impulses[k], right[1], rtol=1e-12, atol=1e-12)


def test_the_code_of_a_sweep_does_not_grow_with_contacts_nor_bodies():
    def body(contacts, bodies):
        plan = schedule(lower(sweep_kernel(contacts, bodies).program(None), True))
        (loop,) = (step for step in plan.steps if isinstance(step, LoopStep))
        return count_operations(loop), sum(map(len, loop.copies))

    assert body(10, 50) == body(100, 50) == body(100, 20)
    assert body(100, 50)[1] == 0  # no carried velocity is copied


# --- derivatives ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [5, 12])
def test_tangents_and_cotangents_are_those_of_the_dense_sum(rows):
    def f(x, y):
        table = dnp.add_at(dnp.add_at(x * x, 3.0 + dnp.floor(y), y * y), 3.0, x[1])
        return dnp.add_at(table, 40.0, y)

    def dense(x, y):
        return x * x + np.eye(rows)[3] * (y * y + x[1])

    x, y, dx, dy = RNG.normal(size=rows), 0.7, RNG.normal(size=rows), 0.3
    value, tangent = jvp(f, (x, y), (dx, dy))
    np.testing.assert_allclose(value, dense(x, y), rtol=1e-15)
    right = 2.0 * x * dx + np.eye(rows)[3] * (2.0 * y * dy + dx[1])
    np.testing.assert_allclose(tangent, right, rtol=1e-14)
    cotangent = RNG.normal(size=rows)
    gx, gy = vjp(f, x, y)[1](cotangent)
    np.testing.assert_allclose(gx @ dx + gy * dy, cotangent @ right, rtol=1e-13)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_derivatives_pass_through_a_loop_that_scatters(mode):
    def f(x):
        return scan(lambda c, i: (dnp.add_at(c, i, dnp.take(c, i + 2.0) * c[0]), None), x, dnp.arange(7.0))[0]

    def plain(x):
        x = x.copy()
        for i in range(7):
            x[i] += x[i + 2] * x[0]
        return x

    x, h = RNG.normal(size=10), 1e-6
    right = np.stack([(plain(x + h * e) - plain(x - h * e)) / (2 * h) for e in np.eye(10)], -1)
    np.testing.assert_allclose(jacobian(f, mode=mode)(x), right, atol=1e-8)
