"""The composite-rigid-body algorithm: the mass matrix.

M_ij = S_iᵀ Y S_j where Y is the inertia of the subtree of joint j, and i is an ancestor of j or j itself. O(n d)
operations for depth d. Reference: R. Featherstone, Rigid Body Dynamics Algorithms (2008), chapter 6, in link frames.
"""

from typing import Any

import delassus.numpy as np
from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.dynamics.tree.poses import Pose, poses_of
from delassus.dynamics.tree.sums import add_symmetric, model_armature, total
from delassus.model.links import Link, Links, links_of
from delassus.model.model import Model


@kernel("(nq)->(nv,nv)")
def crba(model: Model, q: Traced) -> Floats:
    """The mass matrix (nv, nv) [kg·m², kg·m, kg], symmetric and complete.

    >>> dl.crba(dl.load("double_pendulum"), np.zeros((5, 2))).shape
    (5, 2, 2)
    """
    return mass_matrix(model, q)


def mass_matrix(model: Model, q: Any) -> Any:
    """`crba` as a part of other kernels."""
    tree = links_of(model)
    return _assemble(model, tree, poses_of(tree, q))


def _assemble(model: Model, tree: Links, poses: list[Pose]) -> Any:
    links = tree.links
    composite = [rigid_inertia(link) for link in links]
    result = np.array(np.diag(np.array(model_armature(model))))
    for i, link in reversed(list(enumerate(links))):
        mass, first, I = composite[i]
        S_lin, S_ang = link.subspace
        columns = [composite_force(mass, first, I, S_lin[:, k], S_ang[:, k]) for k in range(link.motion.nv)]
        add_symmetric(result, link, link, _project_on_joint(link, columns))
        j = i
        while links[j].parent >= 0:
            columns = [poses[j].force_to_parent(f, n) for f, n in columns]
            j = links[j].parent
            add_symmetric(result, links[j], link, _project_on_joint(links[j], columns))
        if link.parent >= 0:
            composite[link.parent] = total(composite[link.parent], poses[i].rigid_to_parent(mass, first, I))
    return result


def rigid_inertia(link: Link) -> tuple[float, Any, Any]:
    """The rigid inertia of a link: mass, first moment m c and inertia about the link's origin."""
    return link.inertia.mass, np.array(link.inertia.first_moment), np.array(link.inertia.about_origin)


def composite_force(mass: Any, first: Any, I: Any, lin: Any, ang: Any) -> tuple[Any, Any]:
    """Y times a motion: a rigid inertia's force."""
    return mass * lin + np.cross(ang, first), I @ ang + np.cross(first, lin)


def _project_on_joint(carrier: Link, columns: list[tuple[Any, Any]]) -> Any:
    """Sᵀ F (n, k): the torques of a link's joint for k forces on the link."""
    S_lin, S_ang = carrier.subspace
    return np.stack([S_lin.T @ f + S_ang.T @ n for f, n in columns], axis=1)
