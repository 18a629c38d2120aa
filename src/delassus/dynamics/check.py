"""Models that have no dynamics: joints that move no inertia."""

import numpy as np

from delassus.errors import DelassusError
from delassus.model.links import Link, links_of
from delassus.model.model import Model
from delassus.model.runtime import sample_of


class SingularMassMatrix(DelassusError):
    """The mass matrix is singular in every configuration; `joints` names those that move nothing."""

    def __init__(self, model: str, joints: tuple[str, ...]) -> None:
        self.joints = joints
        some = ", ".join(joints[:5]) + (f" and {len(joints) - 5} more" if len(joints) > 5 else "")
        super().__init__(
            f"the mass matrix of {model!r} is singular: these joints move no inertia: {some}. Give their links a "
            "mass, add armature, or lock them."
        )


def check_inertias(model: Model) -> None:
    """Raise if a velocity has nothing to accelerate: no inertia that its joints feel, and no armature.

    Those that come at run time count as present.
    """
    tree = links_of(sample_of(model))
    heavy = [link.inertia.mass > 0.0 or bool(np.any(link.inertia.rotational)) for link in tree.links]
    carries = [False] * len(tree.links)  # whether something with inertia moves on the link
    for i, link in reversed(list(enumerate(tree.links))):
        if link.parent >= 0 and (heavy[i] or carries[i]):
            carries[link.parent] = True
    driven = {
        v
        for i, link in enumerate(tree.links)
        for v, rotor in zip(link.dofs, link.armature, strict=True)
        if link.ratio != 0.0 and (rotor != 0.0 or carries[i] or _resists(link))
    }
    names = tuple(
        joint.name
        for joint, v in zip(model.joints, model.v_starts, strict=True)
        if not driven.issuperset(range(v, v + joint.kind.nv))
    )
    if names:
        raise SingularMassMatrix(model.name, names)


def _resists(link: Link) -> bool:
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
    if not np.all(np.abs(np.diag(D)) > 1e-12 * scale):
        return False
    root = np.sqrt(np.abs(np.diag(D)))
    return bool(np.min(np.abs(np.linalg.eigvalsh(D / np.outer(root, root)))) > 1e-12)
