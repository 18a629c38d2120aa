"""Check for models without dynamics: joints that move no inertia."""

import math
from typing import Final

import numpy as np

from delassus.errors import DelassusError
from delassus.model.links import Link, links_of
from delassus.model.model import Model, sample_of

LEAST: Final = float(np.finfo(float).tiny / np.finfo(float).eps)
"""The least inertia [kg, kg·m²] that a joint may move. Kernels flush numbers below 2.2e-308 to zero. For inertias of
at least this size, the error of a sum by flushed terms is below its last digit."""


class SingularMassMatrix(DelassusError):
    """The mass matrix is singular in every configuration; `joints` are the names of joints that move no inertia."""

    code = "singular-mass-matrix"

    def __init__(self, model: str, joints: tuple[str, ...], vanishing: bool = False) -> None:
        self.joints = joints
        joint_text = ", ".join(joints[:5]) + (f" and {len(joints) - 5} more" if len(joints) > 5 else "")
        too_small = f"an inertia below {LEAST:.0e} kg or kg·m², which kernels round to zero"
        super().__init__(
            f"the mass matrix of {model!r} is singular: these joints move {too_small if vanishing else 'no inertia'}: "
            f"{joint_text}. Give their links a mass, add armature, or lock them."
        )


def check_inertias(model: Model) -> None:
    """Raise an error if a velocity accelerates neither an inertia nor an armature.

    Inertias that are inputs at run time count as present.
    """
    idle = _idle(model, LEAST)
    if idle:
        raise SingularMassMatrix(model.name, idle, vanishing=idle != _idle(model, math.ulp(0.0)))


def _idle(model: Model, threshold: float) -> tuple[str, ...]:
    """The joints that move an inertia below a threshold [kg, kg·m²] with one of their velocities."""
    tree = links_of(sample_of(model))
    heavy = [max(link.inertia.mass, np.abs(link.inertia.rotational).max()) >= threshold for link in tree.links]
    carries = [False] * len(tree.links)  # whether a descendant of the link has inertia
    for i, link in reversed(list(enumerate(tree.links))):
        if link.parent >= 0 and (heavy[i] or carries[i]):
            carries[link.parent] = True
    driven = {
        v
        for i, link in enumerate(tree.links)
        for v, rotor in zip(link.dofs, link.armature, strict=True)
        if abs(link.ratio) >= math.sqrt(threshold)
        and (abs(rotor) >= threshold or carries[i] or _resists(link, threshold))
    }
    return tuple(
        joint.name
        for joint, v in zip(model.joints, model.v_starts, strict=True)
        if not driven.issuperset(range(v, v + joint.kind.nv))
    )


def _resists(link: Link, threshold: float) -> bool:
    """Whether the inertia of a link alone resists every motion of its joint: Sᵀ I S is regular, up to rounding.

    A point mass on the axis of a revolute joint does not.
    """
    mass, c, I_c = link.inertia.mass, np.array(link.inertia.com), np.array(link.inertia.rotational)
    C = np.array([[0.0, -c[2], c[1]], [c[2], 0.0, -c[0]], [-c[1], c[0], 0.0]])
    Y = np.block([[mass * np.eye(3), -mass * C], [mass * C, link.inertia.about_origin]])
    S = np.concatenate(link.subspace)
    D = S.T @ Y @ S
    about = mass * c @ c + np.abs(np.trace(I_c))  # the scale of the inertia about an axis
    scale = np.array([mass if d < 3 else about for d in link.motion.directions])
    if not np.all(np.abs(np.diag(D)) >= np.maximum(1e-12 * scale, threshold)):
        return False
    root = np.sqrt(np.abs(np.diag(D)))
    return bool(np.min(np.abs(np.linalg.eigvalsh(D / np.outer(root, root)))) > 1e-12)
