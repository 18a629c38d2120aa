"""Soft constraints in O(n + m): the articulated-body algorithm on links that carry penalties.

The first iteration of `caba` and its like, from zero forces. Rows give way by ε λ, ε the `proximal` parameter: nothing
removes it, as nothing removes compliance. Choose it where constraints are soft on purpose, or as a fast first guess.

Reference: A. Sathya, H. Bruyninckx, W. Decré, G. Pipeleers, Efficient constrained dynamics algorithms based on an
equivalent LQR formulation using Gauss' principle of least constraint (2023).
"""

from delassus.common.types import Traced
from delassus.compiler.host.kernel import Floats, kernel
from delassus.constrained.delassus.proximal import Proximal
from delassus.constrained.rows.inputs import ROW_INPUTS, SIGNATURE
from delassus.constrained.solvers.caba import caba
from delassus.constraints.mechanism.mechanism import Mechanism


@kernel(SIGNATURE, inputs={name: given for name, given in ROW_INPUTS.items() if name != "force"})
def pv_soft(
    mechanism: Mechanism,
    q: Traced,
    v: Traced,
    tau: Traced,
    *,
    mask: Traced = None,
    acceleration: Traced = None,
    time: Traced = None,
    proximal: Proximal = None,
    position_gain: Traced = None,
    velocity_gain: Traced = None,
) -> tuple[Floats, Floats]:
    """Accelerations (nv,) [rad/s², m/s²] and forces λ (m,) [N, N·m] of the penalties; arguments as for `caba`."""
    return caba(
        mechanism,
        q,
        v,
        tau,
        iterations=1,
        mask=mask,
        acceleration=acceleration,
        time=time,
        proximal=proximal,
        position_gain=position_gain,
        velocity_gain=velocity_gain,
    )
