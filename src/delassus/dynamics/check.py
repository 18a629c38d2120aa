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
    """Raise if a joint has nothing to accelerate: no mass or inertia beyond it and no armature."""
    tree = links_of(model)
    moves = [link.inertia.mass > 0.0 or bool(np.any(link.inertia.rotational)) for link in tree.links]
    for i, link in reversed(list(enumerate(tree.links))):
        if link.parent >= 0 and moves[i]:
            moves[link.parent] = True
    idle = {i for i, link in enumerate(tree.links) if not moves[i] and not any(link.armature)}
    driven = {v for i, link in enumerate(tree.links) if i not in idle for v in link.dofs}
    names = tuple(
        model.joints[j].name
        for j, (i, _) in enumerate(tree.bodies)
        if i in idle and not set(tree.links[i].dofs) <= driven
    )
    if names:
        raise SingularMassMatrix(model.name, names)
