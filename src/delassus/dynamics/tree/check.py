"""Check for models without dynamics: joints that move no inertia."""

import math
from typing import Final

import numpy as np

from delassus.errors import DelassusError
from delassus.model.links import Link, links_of
from delassus.model.model import Model, sample_of

LEAST: Final = float(np.finfo(float).tiny / np.finfo(float).eps)
"""The least inertia [kg, kg·m²] that a joint may feel. Kernels take numbers below 2.2e-308 as zero; from here on, what
they lose of a sum in this way is below its last digit."""


class SingularMassMatrix(DelassusError):
    """The mass matrix is singular in every configuration; `joints` names those that move nothing."""

    code = "singular-mass-matrix"

    def __init__(self, model: str, joints: tuple[str, ...], vanishing: bool = False) -> None:
        self.joints = joints
        joint_text = ", ".join(joints[:5]) + (f" and {len(joints) - 5} more" if len(joints) > 5 else "")
        little = f"less than {LEAST:.0e} kg or kg·m², which all but vanishes in the arithmetic of kernels"
        super().__init__(
            f"the mass matrix of {model!r} is singular: these joints move {little if vanishing else 'no inertia'}: "
            f"{joint_text}. Give their links a mass, add armature, or lock them."
        )


def check_inertias(model: Model) -> None:
    """Raise if a velocity has nothing to accelerate: no inertia that its joints feel, and no armature.

    Those that come at run time count as present.
    """
    idle = _idle(model, LEAST)
    if idle:
        raise SingularMassMatrix(model.name, idle, vanishing=idle != _idle(model, math.ulp(0.0)))


def _idle(model: Model, least: float) -> tuple[str, ...]:
    """The joints that feel less than some inertia [kg, kg·m²] in one of their velocities."""
    tree = links_of(sample_of(model))
    heavy = [max(link.inertia.mass, np.abs(link.inertia.rotational).max()) >= least for link in tree.links]
    carries = [False] * len(tree.links)  # whether something with inertia moves on the link
    for i, link in reversed(list(enumerate(tree.links))):
        if link.parent >= 0 and (heavy[i] or carries[i]):
            carries[link.parent] = True
    driven = {
        v
        for i, link in enumerate(tree.links)
        for v, rotor in zip(link.dofs, link.armature, strict=True)
        if abs(link.ratio) >= math.sqrt(least) and (abs(rotor) >= least or carries[i] or _resists(link, least))
    }
    return tuple(
        joint.name
        for joint, v in zip(model.joints, model.v_starts, strict=True)
        if not driven.issuperset(range(v, v + joint.kind.nv))
    )


def _resists(link: Link, least: float) -> bool:
    """Whether a body on its own resists every motion of its joint: Sᵀ I S is regular, up to rounding.

    A point mass on the axis of a revolute joint, for one, does not.
    """
    mass, c, I_c = link.inertia.mass, np.array(link.inertia.com), np.array(link.inertia.rotational)
    C = np.array([[0.0, -c[2], c[1]], [c[2], 0.0, -c[0]], [-c[1], c[0], 0.0]])
    Y = np.block([[mass * np.eye(3), -mass * C], [mass * C, link.inertia.about_origin]])
    S = np.concatenate(link.subspace)
    D = S.T @ Y @ S
    about = mass * c @ c + np.abs(np.trace(I_c))  # what the inertia about an axis is to be compared with
    scale = np.array([mass if d < 3 else about for d in link.motion.directions])
    if not np.all(np.abs(np.diag(D)) >= np.maximum(1e-12 * scale, least)):
        return False
    root = np.sqrt(np.abs(np.diag(D)))
    return bool(np.min(np.abs(np.linalg.eigvalsh(D / np.outer(root, root)))) > 1e-12)
