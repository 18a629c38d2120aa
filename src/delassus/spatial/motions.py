"""Spatial motions and forces (6,), linear part first, and their transformation between frames.

A motion is the velocity [m/s] of the body's point at the origin and its angular velocity [rad/s]; a force is a
force [N] and its moment [N·m] about the origin. The pose of a child's frame in its parent's is (R, p): the rotation
R (3, 3) maps child axes to parent axes, p (3,) [m] is the child's origin. The functions that transform one vector take
42 floating-point operations in a kernel; a product with the 6×6 matrix takes 75, including those that form it.
"""

from typing import Any

import delassus.numpy as np
from delassus.spatial.rotations import skew


def motion_cross(v: Any, m: Any) -> Any:
    """v × m (6,): the rate of a motion m (6,) that is fixed in a body with the velocity v (6,)."""
    linear = np.cross(v[3:], m[:3]) + np.cross(v[:3], m[3:])
    return np.concatenate([linear, np.cross(v[3:], m[3:])])


def force_cross(v: Any, f: Any) -> Any:
    """v ×* f (6,): the rate of a force f (6,) that is fixed in a body with the velocity v (6,)."""
    moment = np.cross(v[3:], f[3:]) + np.cross(v[:3], f[:3])
    return np.concatenate([np.cross(v[3:], f[:3]), moment])


def adjoint(R: Any, p: Any) -> Any:
    """The matrix (6, 6) that transforms motions from the child's frame to the parent's."""
    return np.block([[R, skew(p) @ R], [np.zeros((3, 3)), R]])


def coadjoint(R: Any, p: Any) -> Any:
    """The matrix (6, 6) that transforms forces from the child's frame to the parent's: the inverse of `adjoint`ᵀ."""
    return np.block([[R, np.zeros((3, 3))], [skew(p) @ R, R]])


def motion_to_parent(R: Any, p: Any, m: Any) -> Any:
    """Transform a motion (6,) from the child's frame to the parent's."""
    angular = R @ m[3:]
    return np.concatenate([R @ m[:3] + np.cross(p, angular), angular])


def motion_to_child(R: Any, p: Any, m: Any) -> Any:
    """Transform a motion (6,) from the parent's frame to the child's."""
    return np.concatenate([R.T @ (m[:3] - np.cross(p, m[3:])), R.T @ m[3:]])


def force_to_parent(R: Any, p: Any, f: Any) -> Any:
    """Transform a force (6,) from the child's frame to the parent's."""
    linear = R @ f[:3]
    return np.concatenate([linear, R @ f[3:] + np.cross(p, linear)])


def force_to_child(R: Any, p: Any, f: Any) -> Any:
    """Transform a force (6,) from the parent's frame to the child's."""
    return np.concatenate([R.T @ f[:3], R.T @ (f[3:] - np.cross(p, f[:3]))])
