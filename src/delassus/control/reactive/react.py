"""The kernel of reactive control: builds and solves the QP of a state, and returns its torques."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy

import delassus.numpy as np
from delassus.compiler.host.kernel import Floats, kernel
from delassus.control.qp.shape import QPShape
from delassus.control.qp.solve import QP_INPUTS, USUAL, QPInputs, solve_qp_inline
from delassus.control.qp.status import QPStatus
from delassus.control.reactive.build import data_of
from delassus.control.reactive.data import ControlData
from delassus.control.reactive.situation import Situation


class ReactionArrays(NamedTuple):
    """Torques (nu,), forces (nf,), accelerations (nv,), and the result of the QP."""

    torque: Any
    force: Any
    acceleration: Any
    multipliers: Any
    primal: Any
    dual: Any
    iterations: Any
    status: Any


def compute_reaction(control: ControlData, q: Any, v: Any, reference: Any, solve: QPInputs = USUAL) -> ReactionArrays:
    """Solve the QP of reactive control inside a kernel. Torques are finite and within limits for any state."""
    s = Situation.of(control, control.places, q, v, reference)
    cones = (3,) * (control.cone_rows // 3)
    shape = QPShape(control.n, control.equalities, control.rows, cones)  # structural zeros are known while tracing
    result = solve_qp_inline(shape, data_of(s, control.tasks), solve)
    U, u0 = s.torque
    torque = U @ result.x + u0
    lower, upper = (np.array(ends) for ends in numpy.array(control.torque_limit))
    # The QP may not depend on all of a state and a reference, so check these for NaN.
    good = (result.status < 2.5) & np.isfinite(np.sum(torque) + np.sum(q) + np.sum(v) + np.sum(reference))
    torque = np.clip(np.where(good, torque, 0.0), lower, upper)
    status = np.where(good, result.status, float(QPStatus.NOT_FINITE))
    x, multipliers = np.where(good, result.x, 0.0), np.where(good, result.multipliers, 0.0)
    primal, dual = (np.where(good, error, numpy.inf) for error in (result.primal, result.dual))
    return ReactionArrays(
        torque, x[control.nv :], x[: control.nv], multipliers, primal, dual, result.iterations, status
    )


@kernel(
    "(nq),(nv),(references)->(nu),(nf),(nv),(multipliers),(),(),(),()",
    inputs={"solve": QP_INPUTS},
    result=ReactionArrays,
)
def react(control: ControlData, q: Any, v: Any, reference: Any, *, solve: QPInputs = USUAL) -> tuple[Floats, ...]:
    """Torques [N·m, N], forces, accelerations, multipliers, errors, Newton steps and status."""
    return compute_reaction(control, q, v, reference, solve)
