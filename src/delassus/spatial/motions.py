"""Motions and forces, 6-vectors with the linear part first, and how they pass between frames.

A motion is the velocity [m/s] of the body's point at the origin and its angular velocity [rad/s]; a force is a
force [N] and its moment [N·m] about the origin. A child's frame stands at (R, p) in its parent's: R (3, 3) turns
the child's axes into the parent's, p (3,) [m] is the child's origin. The functions that carry one vector take 42
floating-point operations in a kernel, where forming the 6×6 matrix and multiplying by it takes 75.
"""

from typing import Any

import delassus.numpy as np
from delassus.spatial.rotations import skew


def motion_cross(v: Any, m: Any) -> Any:
    """v × m (6,): how fast a motion m (6,) changes that is fixed in a body moving with v (6,)."""
    linear = np.cross(v[3:], m[:3]) + np.cross(v[:3], m[3:])
    return np.concatenate([linear, np.cross(v[3:], m[3:])])


def force_cross(v: Any, f: Any) -> Any:
    """v ×* f (6,): how fast a force f (6,) changes that is fixed in a body moving with v (6,)."""
    moment = np.cross(v[3:], f[3:]) + np.cross(v[:3], f[:3])
    return np.concatenate([np.cross(v[3:], f[:3]), moment])


def adjoint(R: Any, p: Any) -> Any:
    """The matrix (6, 6) that takes motions from the child's frame to the parent's."""
    return np.block([[R, skew(p) @ R], [np.zeros((3, 3)), R]])


def coadjoint(R: Any, p: Any) -> Any:
    """The matrix (6, 6) that takes forces from the child's frame to the parent's: `adjoint`, inverted, transposed."""
    return np.block([[R, np.zeros((3, 3))], [skew(p) @ R, R]])


def motion_to_parent(R: Any, p: Any, m: Any) -> Any:
    """A motion (6,) of the child's frame, in the parent's."""
    angular = R @ m[3:]
    return np.concatenate([R @ m[:3] + np.cross(p, angular), angular])


def motion_to_child(R: Any, p: Any, m: Any) -> Any:
    """A motion (6,) of the parent's frame, in the child's."""
    return np.concatenate([R.T @ (m[:3] - np.cross(p, m[3:])), R.T @ m[3:]])


def force_to_parent(R: Any, p: Any, f: Any) -> Any:
    """A force (6,) of the child's frame, in the parent's."""
    linear = R @ f[:3]
    return np.concatenate([linear, R @ f[3:] + np.cross(p, linear)])


def force_to_child(R: Any, p: Any, f: Any) -> Any:
    """A force (6,) of the parent's frame, in the child's."""
    return np.concatenate([R.T @ f[:3], R.T @ (f[3:] - np.cross(p, f[:3]))])
