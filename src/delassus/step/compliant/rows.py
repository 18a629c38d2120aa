"""R and b of the rows in the dynamics and correction phases of a step (see `scheme`)."""

from __future__ import annotations

from typing import Any

import numpy

import delassus.numpy as np
from delassus.constrained.rows.jacobian import link_values
from delassus.constraints.basis.constraint import Constraint
from delassus.constraints.mechanism.rows import compliance_of, right_hand_side
from delassus.step.compliant.kinematics import RowKinematics, rigid_rows
from delassus.step.compliant.types import Recovery, RowInputs, RowValues, StepOptions
from delassus.step.impacts.detection import detect_impacts, rebound_at_start, rebound_bias
from delassus.step.scheme.blend import Blend
from delassus.step.scheme.row_laws import elastic, elastic_matrix, kinematic, unilateral


def dynamics_values(state: RowKinematics, inputs: RowInputs, options: StepOptions, after: Any = None) -> RowValues:
    """R and b of the dynamics phase; `after` (m,) are row velocities after the step without impulses, None if no
    contact may have an impact."""
    scene, (blend, numbers, recovery, _) = state.scene, inputs
    yields = numbers.compliance is not None or bool(numpy.any(compliance_of(state.mechanism)))
    R, b = np.array(compliance_of(state.mechanism)) + np.zeros(scene.m), np.zeros(scene.m)
    wanted = coupling = None
    for constraint, at in state.constraint_rows():
        g, w = state.error(constraint, at), state.reference(constraint, at)
        rate = state.rate[at] - w
        if prescribes_acceleration(constraint):
            wanted = _accelerations(state) if wanted is None else wanted
            b[at] = -(state.rate[at] + blend.h * wanted[at])
        elif _is(recovery.bilateral, 0.0) or not constraint.holds_positions or not constraint.has_reference:
            b[at] = -w
        else:
            b[at] = kinematic(blend, g if _is(recovery.bilateral, 1.0) else recovery.bilateral * g, rate, w)
        soft = [row for row in range(at.start, at.stop) if row in options.elastic]
        if (at.start, at.stop) in options.coupled:
            B = None if numbers.damping is None else numbers.damping[at]
            block, b[at] = elastic_matrix(blend, g, rate, w, numbers.matrix[at, at], B)
            coupling = np.zeros((scene.m, scene.m)) if coupling is None else coupling
            for i, row in enumerate(range(at.start, at.stop)):
                R[row] = block[i, i]
                for j, other in enumerate(range(at.start, at.stop)):
                    coupling[row, other] = 0.0 if i == j else block[i, j]
        elif soft:
            own, B = [row - at.start for row in soft], None if numbers.damping is None else numbers.damping[soft]
            R[soft], b[soft] = elastic(blend, g[own], rate[own], w[own], numbers.compliance[soft], B)
    for row, stop, gap in zip(scene.stop_rows, scene.stops, state.stop_gap, strict=True):
        w = stop.reference_velocity(state.place)
        b[row] = _recovery_bias(blend, gap, state.rate[row], recovery)
        if w is not None:
            b[row] = _recovery_bias(blend, gap, state.rate[row] - w[0], recovery) - w[0]
    normals = list(scene.normals)
    if not normals:
        return RowValues(R, b, b, None, coupling, yields)
    closing = state.rate[normals]
    value = _recovery_bias(blend, state.gap, closing, recovery)
    if numbers.compliance is not None:
        C = numbers.compliance[normals]
        B = None if numbers.damping is None else numbers.damping[normals]
        soft, pulled = elastic(blend, state.gap, closing, 0.0, C, B)
        R[normals], value = np.where(C > 0.0, soft, R[normals]), np.where(C > 0.0, pulled, value)
    b[normals] = value
    if numbers.restitution is None or after is None:
        return RowValues(R, b, b, None, coupling, yields)
    e = numbers.restitution
    result = detect_impacts(state.motions.model, blend, state.gap, closing, after[normals], e)
    if options.impacts == "start":
        result = result._replace(share=0.0)
        leaves, _ = rebound_at_start(np.maximum(state.gap, 0.0) / blend.h, closing, after[normals], e)
        rebound = np.minimum(-leaves, 0.0)
    else:
        rebound = rebound_bias(result, blend, closing, after[normals], e)
    full = np.array(b)
    full[normals] = np.where(result.on, rebound, value)
    return RowValues(R, full, b, result, coupling, yields)


def prescribes_acceleration(constraint: Constraint) -> bool:
    """Whether a constraint has gains or a target acceleration, which then determine how its error decays."""
    return any(numpy.any(getattr(constraint, name)) for name in ("acceleration", "position_gain", "velocity_gain"))


def _is(share: Any, number: float) -> bool:
    """Whether a fraction is a constant of this value at compile time."""
    return isinstance(share, float) and share == number


def _recovery_bias(blend: Blend, gap: Any, rate: Any, recovery: Recovery) -> Any:
    """b of a contact or limit without impact, which corrects a fraction of its penetration."""
    b = unilateral(blend, gap, rate)
    return b if _is(recovery.unilateral, 0.0) else np.where(gap > 0.0, b, recovery.unilateral * gap / blend.h)


def correction_bias(state: RowKinematics, inputs: RowInputs, options: StepOptions) -> Any:
    """b (m,) of the correction phase, whose R is that of the dynamics phase."""
    scene, (blend, numbers, *_) = state.scene, inputs
    b = np.zeros(scene.m)
    for constraint, at in state.constraint_rows():
        rigid = rigid_rows(at, options.elastic)
        if rigid and constraint.holds_positions:
            b[[at.start + k for k in rigid]] = state.error(constraint, at)[rigid] / blend.h
    for row, gap in zip(scene.stop_rows, state.stop_gap, strict=True):
        b[row] = gap / blend.h
    for row, gap in zip(scene.normals, state.gap, strict=True):
        soft = np.array(False) if numbers.compliance is None else numbers.compliance[row] > 0.0
        b[row] = np.where(soft, np.maximum(gap, 0.0), gap) / blend.h
    return b


def _accelerations(state: RowKinematics) -> Any:
    """Target accelerations (m,) of constraints with gains."""
    k = right_hand_side(state.mechanism, state.rows, state.motions)
    return k - link_values(state.rows, state.motions, np.zeros(state.mechanism.nv))
