"""The Coriolis matrix C(q, v): C v are the Coriolis and centrifugal torques, and Ṁ - 2 C is skew-symmetric.

Many matrices have C v = c(q, v) - c(q, 0); this one is for passivity-based control. A column s of a joint's S is fixed
in its link, so ṡ = v × s. Let Y and B be the inertia and the matrix of the joint's subtree (see `rnea_derivatives`).
The force for a motion along s is F = Y ṡ + ½ B s. The entry of C for an ancestor j is S_jᵀ F; that for a descendant k
is s_kᵀ (Y ṡ + ½ B s) with the Y and B of k's subtree. O(n d) operations for depth d.
Reference: S. Echeandia, P. Wensing, Numerical methods to compute the Coriolis matrix and Christoffel symbols for
rigid-body systems (2021).
"""

import delassus.numpy as np
from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.dynamics.mass.composite import apply_inertia, coriolis_forces, coriolis_matrix_of, moving_body
from delassus.dynamics.tree.base_frame import moving_links
from delassus.dynamics.tree.sums import add_block, total
from delassus.model.links import links_of
from delassus.model.model import Model
from delassus.spatial.motions import motion_cross


@kernel("(nq),(nv)->(nv,nv)")
def coriolis_matrix(model: Model, q: Traced, v: Traced) -> Floats:
    """The Coriolis matrix C (nv, nv): Ṁ - 2 C is skew-symmetric, and C v + gravity_torques(q) = bias_torques(q, v).

    Args:
        model: The robot.
        q: Configuration (nq,) [rad, m].
        v: Velocity (nv,) [rad/s, m/s].

    >>> robot = dl.load("double_pendulum")
    >>> q, v = np.array([0.1, 0.2]), np.ones(2)
    >>> C = dl.dynamics.coriolis_matrix(robot, q, v)
    >>> bool(np.allclose(C @ v + dl.dynamics.gravity_torques(robot, q), dl.dynamics.bias_torques(robot, q, v)))
    True
    """
    tree = links_of(model)
    links, moving = tree.links, moving_links(tree, q, v, np.zeros(model.nv), falling=False)
    composites = [moving_body(link, moving[i]) for i, link in enumerate(links)]
    rates = [np.stack([motion_cross(m.v, s) for s in m.S.T], axis=1) for m in moving]  # Ṡ
    C = np.zeros((model.nv, model.nv))
    for i, link in reversed(list(enumerate(links))):
        mass, h, J, P, K = composites[i]
        S, coriolis = moving[i].S, coriolis_matrix_of(K)
        F = apply_inertia(mass, h, J, rates[i]) + 0.5 * coriolis_forces(P, coriolis, S)
        add_block(C, link, link, S.T @ F)
        momentum = apply_inertia(mass, h, J, S)
        for j in tree.path(i)[:-1]:
            add_block(C, links[j], link, moving[j].S.T @ F)
            outward = momentum.T @ rates[j] + 0.5 * (S.T @ coriolis_forces(P, coriolis, moving[j].S))
            add_block(C, link, links[j], outward)
        if link.parent >= 0:
            composites[link.parent] = total(composites[link.parent], composites[i])
    return C
