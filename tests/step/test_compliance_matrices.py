"""Constraints whose rows yield to each other's forces: compliance matrices, against stiffness in joint coordinates."""

import numpy as np
import pytest

import delassus as dl
from delassus.model.bundled.build import Assembly, box
from delassus.model.joints import Translation
from refusals import refuses
from stepped import G, masses

step, system = dl.stepping.compliant_step, dl.stepping.compliant_system
H = 1e-2


def held() -> dl.Mechanism:
    """Two masses of 1 and 2 kg, each held at a place by three rows."""
    return dl.Mechanism(
        masses(2),
        [dl.Point(f"mass{k}", position=(0.1 * k, 0.2, 0.0), name=name) for k, name in enumerate(("first", "second"))],
    )


def matrix(seed: int, size: float = 1e-3) -> np.ndarray:
    A = np.random.default_rng(seed).normal(size=(3, 3))
    return size * (A @ A.T + 0.1 * np.eye(3))


def state(seed: int = 5, batch: tuple[int, ...] = ()):
    rng = np.random.default_rng(seed)
    return 0.1 * rng.normal(size=(*batch, 6)), rng.normal(size=(*batch, 6)), rng.normal(size=(*batch, 6))


def by_stiffness(mechanism, q, v, tau, C, B, alpha, beta):
    """(M + hα JᵀBJ + h²αβ JᵀNJ) v⁺, N = C⁻¹: equations 30 and 31 of the reference, with the damper's."""
    J, g = dl.constraint_jacobian(mechanism, q), dl.constraint_error(mechanism, q)
    M, N, f = dl.crba(mechanism, q), np.linalg.inv(C), tau - dl.bias_torques(mechanism, q, v)
    W = M + H * alpha * J.T @ B @ J + H * H * alpha * beta * J.T @ N @ J
    pull = J.T @ (N @ (g + H * alpha * (1 - beta) * J @ v) + (1 - alpha) * B @ J @ v)
    return np.linalg.solve(W, M @ v + H * (f - pull))


@pytest.mark.parametrize("damping", [0.0, 7.0])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.5, 0.5), (0.7, 0.9)])
def test_a_compliance_matrix_is_a_stiffness_matrix_of_the_joints(alpha, beta, damping):
    mechanism, (q, v, tau) = held(), state()
    matrices = [matrix(1), matrix(2)]
    C, B = np.kron(np.diag([1, 0]), matrices[0]) + np.kron(np.diag([0, 1]), matrices[1]), damping * np.eye(6)
    options = {"alpha": alpha, "beta": beta, "compliance": {"first": matrices[0], "second": matrices[1]}}
    options |= {"damping": {"first": damping, "second": damping}} if damping else {}
    found = step(mechanism, q, v, tau, time_step=H, **options)
    np.testing.assert_allclose(found.v, by_stiffness(mechanism, q, v, tau, C, B, alpha, beta), rtol=1e-9)
    assert found.status == dl.Status.CONVERGED and found.residual < 1e-10


@pytest.mark.parametrize(
    "method", ["auto", "ldl", "cg", "minres", "gauss_seidel", "pgs", "sequential_impulses", "newton"]
)
def test_all_solvers_know_compliance_matrices(method):
    mechanism, (q, v, tau), C = held(), state(), matrix(1)
    options = {"compliance": {"first": C}, "tolerance": 1e-12, "iterations": 10_000}
    found = step(mechanism, q, v, tau, time_step=H, method=method, **options)
    asked = system(mechanism, q, v, tau, time_step=H, compliance={"first": C})
    R = np.diag(asked.R) + asked.coupling
    np.testing.assert_allclose(R[:3, :3], C / H**2, rtol=1e-12)
    KKT = np.block([[asked.W, -asked.J.T], [-asked.J, -R]])
    x = np.linalg.solve(KKT, np.concatenate([asked.c, asked.b]))
    np.testing.assert_allclose(found.v, x[:6], atol=1e-8)
    np.testing.assert_allclose(found.impulse, x[6:], atol=1e-8)
    if method not in ("auto", "newton"):
        np.testing.assert_allclose(asked.solve(method, tolerance=1e-12, iterations=10_000).x, x[:6], atol=1e-8)


def test_a_diagonal_matrix_is_one_number_for_each_row():
    mechanism, (q, v, tau), c = held(), state(), np.array([1e-3, 2e-3, 5e-4])
    rows, whole = (
        step(mechanism, q, v, tau, time_step=H, compliance={"first": C}, damping={"first": 3.0})
        for C in (c, np.diag(c))
    )
    np.testing.assert_allclose(whole.v, rows.v, rtol=1e-10)


def test_a_singular_matrix_is_rigid_where_it_does_not_yield():
    mechanism, (q, v, tau) = held(), state()
    along = np.array([1.0, 2.0, -2.0]) / 3.0
    found = step(mechanism, q, v, tau, time_step=H, compliance={"first": 1e-3 * np.outer(along, along)})
    error = dl.constraint_error(mechanism, found.q)[:3]
    np.testing.assert_allclose(error - along * (along @ error), 0.0, atol=1e-12)
    assert abs(along @ error) > 1e-6


def test_a_weight_on_a_bushing_sinks_by_its_compliance():
    a = Assembly("block")
    a.body("block", Translation(), None, (0, 0, 0), [box((0.1, 0.1, 0.1), 3.0)])
    mechanism, C = dl.Mechanism(a.model(), [dl.Point("block", position=(0, 0, 0), name="bushing")]), matrix(4, 1e-4)
    q, v = np.zeros(3), np.zeros(3)
    for _ in range(400):
        after = step(mechanism, q, v, np.zeros(3), time_step=H, compliance={"bushing": C}, damping={"bushing": 100.0})
        q, v = after.q, after.v
    np.testing.assert_allclose(q, C @ [0.0, 0.0, -3.0 * G], rtol=1e-6)


@pytest.mark.parametrize("how", ["none", "pre", "post"])
def test_matrices_stand_beside_rigid_rows_and_contacts(how):
    mechanism, (q, v, tau), C = held(), state(), matrix(1)
    options = {"time_step": H, "compliance": {"first": C}, "stabilization": how}
    alone = step(mechanism, q, v, tau, **options)
    beside = step(mechanism, q, v, tau, contacts=dl.Contact("mass0", height=-50.0), tolerance=1e-13, **options)
    np.testing.assert_allclose(beside.v, alone.v, atol=1e-7)
    assert beside.status == dl.Status.CONVERGED


def test_states_of_a_batch_may_have_matrices_of_their_own():
    mechanism, (q, v, tau) = held(), state(batch=(3,))
    own = np.stack([matrix(k) for k in range(3)])
    found = step(mechanism, q, v, tau, time_step=H, compliance={"first": own})
    for k in range(3):
        alone = step(mechanism, q[k], v[k], tau[k], time_step=H, compliance={"first": own[k]})
        np.testing.assert_array_equal(found.v[k], alone.v)
    every = step(mechanism, q[:2], v[:2], tau[:2], time_step=H, compliance={"first": own[0]})
    np.testing.assert_array_equal(every.v[0], found.v[0])


def test_matrices_that_are_none_are_refused_with_a_remedy():
    mechanism, (q, v, tau) = held(), state(batch=(3,))
    for C, states, words in (
        (matrix(0), slice(None), ("wrong-shape",)),
        (np.triu(np.ones((3, 3))), 0, ("not-symmetric",)),
        (np.diag([1.0, -1.0, 1.0]), 0, ("not-semidefinite",)),
        (np.diag([1.0, np.inf, 1.0]), 0, ("not-finite",)),
    ):
        with refuses(*words):
            step(mechanism, q[states], v[states], tau[states], time_step=H, compliance={"first": C})
    with refuses("wrong-shape"):
        step(mechanism, q[0], v[0], tau[0], time_step=H, compliance=np.eye(6))
    with refuses("wrong-shape", "damping"):
        step(mechanism, q[0], v[0], tau[0], time_step=H, compliance=1e-3, damping={"first": np.eye(3)})
