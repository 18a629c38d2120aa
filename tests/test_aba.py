"""The articulated-body algorithm against dense algebra that shares nothing with it."""

import numpy as np
import pytest

import delassus as dl
from delassus.compiler.interpreter import evaluate
from delassus.model.tree import Tree, balanced_tree, chain, random_tree

TREES = [chain(1), chain(7), balanced_tree(12), random_tree(20, seed=3)]


def world_poses(tree: Tree, q):
    """Rotation and origin of every link in the world, by multiplying the joints' homogeneous transforms."""
    poses = []
    for link, angle in zip(tree.links, q, strict=True):
        joint = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
        R, p = poses[link.parent] if link.parent >= 0 else (np.eye(3), np.zeros(3))
        poses.append((R @ np.array(link.rotation) @ joint, p + R @ np.array(link.translation)))
    return poses


def mass_matrix_and_potential(tree: Tree, q):
    """M = Σ m Jvᵀ Jv + Jωᵀ I Jω with geometric Jacobians in the world frame, and the potential energy."""
    poses = world_poses(tree, q)
    n = len(tree.links)
    M, potential = np.zeros((n, n), np.result_type(q, float)), 0.0
    for i, link in enumerate(tree.links):
        R, p = poses[i]
        com = p + R @ np.array(link.com)
        Jv, Jw = np.zeros((2, 3, n), M.dtype)
        j = i
        while j >= 0:
            axis, origin = poses[j][0][:, 2], poses[j][1]
            Jv[:, j], Jw[:, j] = np.cross(axis, com - origin), axis
            j = tree.links[j].parent
        M += link.mass * Jv.T @ Jv + Jw.T @ R @ np.array(link.inertia) @ R.T @ Jw
        potential -= link.mass * np.array(tree.gravity) @ com
    return M, potential


def dense_acceleration(tree: Tree, q, v, tau):
    """Lagrange's equations, their derivatives of M and V by complex steps."""
    n, h = len(q), 1e-30
    M, _ = mass_matrix_and_potential(tree, q)
    dM, dV = np.zeros((n, n, n)), np.zeros(n)
    for k in range(n):
        step = q.astype(complex)
        step[k] += 1j * h
        Mk, Vk = mass_matrix_and_potential(tree, step)
        dM[k], dV[k] = Mk.imag / h, Vk.imag / h
    coriolis = np.einsum("kij,k,j->i", dM, v, v) - 0.5 * np.einsum("kij,i,j->k", dM, v, v)
    return np.linalg.solve(M, tau - coriolis - dV)


def states(tree: Tree, batch: int):
    return np.random.default_rng(7).normal(size=(3, batch, tree.nv))


@pytest.mark.parametrize("tree", TREES, ids=lambda t: f"{t.nv} links")
def test_plain_numpy_agrees_with_dense_lagrangian_dynamics(tree):
    for q, v, tau in states(tree, 3).swapaxes(0, 1):
        expected = dense_acceleration(tree, q, v, tau)
        np.testing.assert_allclose(dl.aba.python(tree, q, v, tau), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("tree", TREES, ids=lambda t: f"{t.nv} links")
def test_compiled_code_agrees_with_dense_lagrangian_dynamics(tree):
    x = states(tree, 20)
    expected = [dense_acceleration(tree, *x[:, k]) for k in range(20)]
    np.testing.assert_allclose(dl.aba(tree, *x), expected, rtol=1e-9, atol=1e-9)


def test_compiled_code_has_the_bits_of_the_interpreter():
    tree = random_tree(20, seed=3)
    x = states(tree, 37)
    (expected,) = evaluate(dl.aba.program(tree), *x)
    np.testing.assert_array_equal(dl.aba.specialize(tree)(*x), expected)


def test_a_parent_must_come_before_its_children():
    link = chain(1).links[0]
    with pytest.raises(dl.DelassusError, match="link 0 hangs on link 0"):
        Tree((type(link)(0, link.rotation, link.translation, link.mass, link.com, link.inertia),))
