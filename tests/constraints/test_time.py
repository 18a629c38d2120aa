"""Constraints that move in time: all algorithms have to be told what time it is."""

import numpy as np
import pytest

import delassus as dl
import delassus.numpy as dnp
from delassus.constrained.solvers.kkt import dense_system
from delassus.model.generators import random_tree
from refusals import refuses

TREE = random_tree(3, seed=5)
TIP, JOINT = TREE.frame_list[-1].name, TREE.joints[0].name
GAINS = {"position_gain": 9.0, "velocity_gain": 6.0}


def circle(t):
    return dnp.stack([dnp.cos(t), dnp.sin(t), 0.2])


def turning(t):
    c, s = dnp.cos(t), dnp.sin(t)
    return dnp.stack([dnp.stack([c, -s, 0.0]), dnp.stack([s, c, 0.0]), dnp.stack([0.0, 0.0, 1.0])]), circle(t)


def rising(kinematics, q, t):
    return dnp.stack([kinematics.position(TIP)[2] - t])


def swept(kinematics, q, t):
    return dnp.stack([dnp.cos(t) * q[0] + dnp.sin(t) * q[1]])


MOVING = {
    "point": dl.Point(TIP, position=circle, name="moved", **GAINS),
    "weld": dl.Weld(TIP, target=turning, name="moved", **GAINS),
    "joint": dl.JointLock(JOINT, position=lambda t: dnp.stack([dnp.sin(t)]), name="moved", **GAINS),
    "function": dl.Implicit(rising, rows=1, name="moved", **GAINS),
    "function whose derivative moves": dl.Implicit(swept, rows=1, name="moved", **GAINS),
}
POINT, SWEPT = (dl.Mechanism(TREE, MOVING[name]) for name in ("point", "function whose derivative moves"))

OF_REFERENCES = {
    "caba": dl.caba,
    "prox_pv": dl.prox_pv,
    "prox_ltl": dl.prox_ltl,
    "prox_ltls": dl.prox_ltls,
    "pv_soft": dl.pv_soft,
    "pv_early": dl.pv_early,
    "three_steps": dl.three_steps,
    "constraint_bias": dl.constraint_bias,
    "constraint_error": dl.constraint_error,
    "constraint_residual": dl.constraint_residual,
    "constrained_derivatives": dl.constrained_derivatives,
    "constrained_dynamics": dl.constrained_dynamics,
    "assemble": dl.assemble,
    "project": dl.project,
    "impact": dl.impact,
    "dense_system": dense_system,
}
OF_ROWS = {
    "constraint_jacobian": dl.constraint_jacobian,
    "delassus_matrix": dl.delassus_matrix,
    "operational_inertia": dl.operational_inertia,
    "delassus_apply": dl.delassus_apply,
    "delassus_solve": dl.delassus_solve,
    "kkt_factor": dl.kkt_factor,
    "kkt_inverse_blocks": dl.kkt_inverse_blocks,
}


def results(kernel, mechanism, **given):
    """What a kernel computes for one state, as a flat array."""
    rng = np.random.default_rng(0)
    x = [0.3 * rng.normal(size=operand.shape) for operand in kernel.operands(mechanism)[0]]
    options = {"method": "prox_ltl"} if kernel is dl.constrained_dynamics else {}
    found = kernel.python(mechanism, *x, **options, **given)
    return np.concatenate([np.ravel(part) for part in (found if isinstance(found, tuple) else (found,))])


@pytest.mark.parametrize("name", MOVING)
def test_a_constraint_that_moves_needs_the_time(name):
    mechanism = dl.Mechanism(TREE, MOVING[name])
    with refuses("missing-argument", "'moved'", "time"):
        results(dl.constraint_bias, mechanism)
    results(dl.constraint_bias, mechanism, time=0.5)


@pytest.mark.parametrize("kernel", OF_REFERENCES.values(), ids=OF_REFERENCES)
def test_algorithms_of_references_need_the_time(kernel):
    with refuses("missing-argument", "'moved'"):
        results(kernel, POINT)
    assert np.isfinite(results(kernel, POINT, time=0.5)).all()


@pytest.mark.parametrize("kernel", OF_ROWS.values(), ids=OF_ROWS)
def test_rows_that_stay_need_no_time(kernel):
    np.testing.assert_array_equal(results(kernel, POINT), results(kernel, POINT, time=0.5))


@pytest.mark.parametrize("kernel", OF_ROWS.values(), ids=OF_ROWS)
def test_rows_that_move_need_the_time(kernel):
    with refuses("missing-argument", "'moved'"):
        results(kernel, SWEPT)
    assert not np.array_equal(results(kernel, SWEPT, time=0.5), results(kernel, SWEPT, time=0.0))


def test_rows_that_move_are_where_they_are_at_the_time():
    np.testing.assert_allclose(
        dl.constraint_jacobian.python(SWEPT, np.zeros(3), time=0.5)[0, :2], [np.cos(0.5), np.sin(0.5)], atol=1e-15
    )
    J, M = (k.python(SWEPT, np.zeros(3), **t) for k, t in ((dl.constraint_jacobian, {"time": 0.5}), (dl.crba, {})))
    for method in ("pv_osimr", "efpa", "ltl"):
        G = dl.delassus_matrix.python(SWEPT, np.zeros(3), method=method, time=0.5)
        np.testing.assert_allclose(G, J @ np.linalg.solve(M, J.T), rtol=1e-12)


def test_functions_for_users_need_the_time():
    q, v = np.zeros(TREE.nq), np.zeros(TREE.nv)
    for call in (
        lambda: dl.constrained_dynamics(POINT, q, v, v),
        lambda: dl.kkt(POINT, q, v, v),
        lambda: dl.assemble(POINT, q),
        lambda: dl.project(POINT, q, v),
        lambda: dl.project(POINT, q, v, method="svd"),
        lambda: dl.impact(POINT, q, v),
    ):
        with refuses("missing-argument", "'moved'"):
            call()


def test_the_name_is_that_of_the_constraint_that_moves():
    rest = dl.Point(TIP, position=(0.1, 0.2, 0.3), name="rest", **GAINS)
    with refuses("missing-argument", "'moved'"):
        results(dl.caba, dl.Mechanism(TREE, (rest, MOVING["joint"])))


@pytest.mark.parametrize(
    "constraint",
    [
        dl.Point(TIP, position=lambda t: dnp.array([0.1, 0.2, 0.3]), **GAINS),
        dl.Implicit(lambda kinematics, q, t: dnp.stack([kinematics.position(TIP)[2] - 0.0 * t]), rows=1, **GAINS),
        dl.Implicit(lambda kinematics, q: dnp.stack([kinematics.position(TIP)[2]]), rows=1, **GAINS),
    ],
    ids=["point", "function", "function without time"],
)
def test_what_does_not_change_in_time_does_not_need_it(constraint):
    mechanism = dl.Mechanism(TREE, constraint)
    np.testing.assert_array_equal(results(dl.prox_ltl, mechanism), results(dl.prox_ltl, mechanism, time=2.0))
