"""Soft constraints in O(n + m): the articulated-body algorithm with penalties added to the inertias.

The first iteration of `caba`, from zero forces. Rows have the compliance ε, the `proximal` parameter, in addition to
their own. Choose it for intentionally soft constraints, or as a fast initial guess.

Reference: A. Sathya, H. Bruyninckx, W. Decré, G. Pipeleers, Efficient constrained dynamics algorithms based on an
equivalent LQR formulation using Gauss' principle of least constraint (2023).
"""

from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.constrained.rows.inputs import NO_INPUTS, SIGNATURE, ConstraintInputs, row_inputs
from delassus.constrained.solvers.caba import caba
from delassus.constraints.mechanism.mechanism import Mechanism


@kernel(SIGNATURE, inputs={"rows": row_inputs("force")})
def pv_soft(
    mechanism: Mechanism, q: Traced, v: Traced, tau: Traced, *, rows: ConstraintInputs = NO_INPUTS
) -> tuple[Floats, Floats]:
    """Accelerations (nv,) [rad/s², m/s²] and forces λ (m,) [N, N·m] of the penalties; arguments as for `caba`.

    >>> arm = dl.load("double_pendulum")
    >>> a, force = dl.pv_soft(dl.Mechanism(arm, dl.Point("tip")), [0.1, 0.2], np.zeros(2), np.zeros(2), proximal=1e-3)
    >>> a.shape, force.shape
    ((2,), (3,))
    """
    return caba(mechanism, q, v, tau, iterations=1, rows=rows)
