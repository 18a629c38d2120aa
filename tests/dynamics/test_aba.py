"""The articulated-body algorithm against dense algebra that shares nothing with it."""

from dataclasses import replace

import numpy as np
import pytest

import delassus as dl
from delassus.compiler.backends.interpreter import evaluate
from delassus.model.generators import balanced_tree, chain, random_tree
from delassus.model.model import Model
from native_bits import FULL
from refusals import refuses

TREES = [chain(1), chain(7), balanced_tree(12), random_tree(20, seed=3)]


def world_poses(tree: Model, q):
    """Rotation and origin of every link in the world, by multiplying the joints' homogeneous transforms."""
    poses = []
    for joint, angle in zip(tree.joints, q, strict=True):
        turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
        R, p = poses[joint.parent] if joint.parent >= 0 else (np.eye(3), np.zeros(3))
        poses.append((R @ joint.placement.R @ turn, p + R @ joint.placement.p))
    return poses


def mass_matrix_and_potential(tree: Model, q):
    """M = Σ m Jvᵀ Jv + Jωᵀ I Jω with geometric Jacobians in the world frame, and the potential energy."""
    poses = world_poses(tree, q)
    n = len(tree.joints)
    M, potential = np.zeros((n, n), np.result_type(q, float)), 0.0
    for i, joint in enumerate(tree.joints):
        R, p = poses[i]
        com = p + R @ np.array(joint.inertia.com)
        Jv, Jw = np.zeros((2, 3, n), M.dtype)
        j = i
        while j >= 0:
            axis, origin = poses[j][0][:, 2], poses[j][1]
            Jv[:, j], Jw[:, j] = np.cross(axis, com - origin), axis
            j = tree.joints[j].parent
        M += joint.inertia.mass * Jv.T @ Jv + Jw.T @ R @ np.array(joint.inertia.rotational) @ R.T @ Jw
        potential -= joint.inertia.mass * np.array(tree.gravity) @ com
    return M, potential


def dense_acceleration(tree: Model, q, v, tau):
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


def states(tree: Model, batch: int):
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
    np.testing.assert_array_equal(dl.aba.compiled(tree, target=FULL).ufunc(*x), expected)


def test_a_parent_must_come_before_its_children():
    joint = chain(1).joints[0]
    with refuses("not-a-tree", "'joint0'"):
        Model("loop", (replace(joint, parent=0),))
