"""Derivatives of forward dynamics with respect to configuration, velocity and torques.

Differentiation of tau = rnea(q, v, a) gives ∂a/∂x = -M⁻¹ ∂tau/∂x for x = q or v, at the acceleration due to tau, and
∂a/∂tau = M⁻¹. M and ∂tau/∂x are computed from the same sums over bodies, in the base's frame. The sparse factors of M
solve for all columns, in loops over the columns of each limb. Cost: O(n² d) for depth d. The accuracy is that of a
solve with M: errors grow with its condition number.
"""

from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.dynamics.derivatives.columns import accelerations_by
from delassus.dynamics.derivatives.rnea_derivatives import torque_derivatives
from delassus.dynamics.mass.composite import mass_and_bias
from delassus.dynamics.mass.factor import ancestors, factor_tree, substitute
from delassus.dynamics.tree.check import check_inertias
from delassus.dynamics.tree.recursion import FORCES
from delassus.model.model import Model


@kernel("(nq),(nv),(nv)->(nv,nv),(nv,nv),(nv,nv)", inputs=FORCES)
def aba_derivatives(
    model: Model, q: Traced, v: Traced, tau: Traced, *, forces: Traced = None
) -> tuple[Floats, Floats, Floats]:
    """Derivatives (nv, nv) of `aba`: ∂a/∂q along tangent vectors, ∂a/∂v, and ∂a/∂tau, the inverse mass matrix.

    Args:
        model: The robot.
        q: Configuration (nq,) [rad, m].
        v: Velocity (nv,) [rad/s, m/s].
        tau: Generalized forces (nv,) [N·m, N].
        forces: (njoints, 6) [N, N·m] on the bodies, as in `aba`, constant in their frames (input at run time).

    >>> robot, q, v, tau = dl.load("double_pendulum"), np.zeros(2), np.ones(2), np.zeros(2)
    >>> by_q, by_v, by_tau = dl.derivatives.aba_derivatives(robot, q, v, tau)
    >>> bool(np.allclose(by_tau @ dl.crba(robot, q), np.eye(2)))
    True
    """
    check_inertias(model)
    above = ancestors(model)
    M, bias = mass_and_bias(model, q, v, forces)
    U, D = factor_tree(above, M)
    a = substitute(above, U, D, tau - bias)
    by_q, by_v, _ = torque_derivatives(model, q, v, a, forces=forces)
    return accelerations_by(above, U, D, by_q, by_v)
