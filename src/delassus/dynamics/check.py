"""Models that have no dynamics: joints that move no inertia."""

import numpy as np

from delassus.errors import DelassusError
from delassus.model.links import links_of
from delassus.model.model import Model


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
    """Raise if a velocity has nothing to accelerate: no mass or inertia beyond its joints and no armature."""
    tree = links_of(model)
    moves = [link.inertia.mass > 0.0 or bool(np.any(link.inertia.rotational)) for link in tree.links]
    for i, link in reversed(list(enumerate(tree.links))):
        if link.parent >= 0 and moves[i]:
            moves[link.parent] = True
    driven = {
        v
        for i, link in enumerate(tree.links)
        for v, rotor in zip(link.dofs, link.armature, strict=True)
        if link.ratio != 0.0 and (moves[i] or rotor != 0.0)
    }
    names = tuple(
        joint.name
        for joint, v in zip(model.joints, model.v_starts, strict=True)
        if not driven.issuperset(range(v, v + joint.kind.nv))
    )
    if names:
        raise SingularMassMatrix(model.name, names)
