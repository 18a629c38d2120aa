"""Checks the arguments of a compliant step and expands them to arrays over all rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delassus.common.checks import (
    TIME_STEPS,
    TOLERANCES,
    Range,
    iteration_count,
    number_in_range,
    numbers_in_range,
    real_array,
)
from delassus.common.names import UnknownName
from delassus.constrained.rows.locked import locked_velocities
from delassus.constraints.basis.constraint import row_indices
from delassus.constraints.basis.frame_constraint import ROW_NAMES
from delassus.constraints.mechanism.mechanism import Mechanism
from delassus.contact.solvers.options import SolverInputs, SolverOptions
from delassus.dynamics.forces.tendons import check_tendons
from delassus.errors import BadArgument
from delassus.model.model import Model
from delassus.step.compliant.forces import Servo
from delassus.step.compliant.inputs import RowSprings, Scheme, StepNumbers
from delassus.step.compliant.options import ServoOptions, SystemOptions
from delassus.step.compliant.types import StepOptions
from delassus.step.laws.inputs import ContactPlanes
from delassus.step.points.parameters import contact_parameters, plane_arrays, scene_for
from delassus.step.scene import Scene
from delassus.step.scheme.row_laws import EXPLICIT

_BLENDS: Final = Range(0.0, 1.0, "from 0, explicit, to 1, implicit")


class StepError(BadArgument):
    """Invalid arguments of a time step: values out of range, unknown rows, or options that conflict."""


class CompliantArguments(NamedTuple):
    """A scene with its contacts, the step h (…) [s], and the inputs of kernels other than the state.

    Attributes:
        scene: The scene, which is compiled into the kernel.
        step: h (…) [s].
        numbers: Run-time inputs of the kernel; α and β are None if both are 1.
        options: Options that are compiled into the kernel.
    """

    scene: Scene
    step: NDArray[np.float64]
    numbers: StepNumbers
    options: StepOptions

    @classmethod
    def of(
        cls, mechanism: Any, contacts: Any, time_step: Any, options: SystemOptions, batch: tuple[int, ...] = ()
    ) -> CompliantArguments:
        """Check the arguments of a step; `batch` is the shape of the leading axes of the states."""
        rows, scheme, elements = options.rows, options.scheme, options.elements
        scene, given = scene_for(mechanism, contacts, rows.limits, rows.joint_friction)
        check_tendons(scene.model)
        h = numbers_in_range("time_step", time_step, TIME_STEPS)
        alpha, beta = (
            numbers_in_range(name, 1.0 if x is None else x, _BLENDS)
            for name, x in (("alpha", scheme.alpha), ("beta", scheme.beta))
        )
        contact = contact_parameters(given, options.contact)
        planes = ContactPlanes(*plane_arrays(scene, *options.planes))
        springs, elastic, coupled = elastic_numbers(
            scene, elements.compliance, elements.damping, contact.compliance, batch
        )
        check_blends(scene, alpha, beta, elastic, springs.compliance)
        velocity, dofs = read_driven(scene.model, elements.driven)
        if elements.geometric_stiffness is not None:
            impulses = _core("geometric_stiffness", elements.geometric_stiffness, scene.m)
            springs = springs._replace(geometric=impulses)
        if options.time is not None:
            real_array("time", options.time, "a number of seconds")
        implicit = bool(np.all(alpha == 1.0) and np.all(beta == 1.0))
        numbers = StepNumbers(
            Scheme() if implicit else Scheme(alpha, beta),
            springs,
            servo_numbers(scene.model, elements.servos),
            velocity,
            contact.replace(compliance=None),
            planes,
            options.time,
        )
        return cls(scene, h, numbers, StepOptions(elastic, dofs, coupled, scheme.stabilization))

    @property
    def has_smooth_forces(self) -> bool:
        """Whether all forces are smooth in time: only springs, dampers, servos and elastic rows act.

        Rigid rows change velocities by jumps; with β = ½, the velocities of their bodies would oscillate from step to
        step.
        """
        scene = self.scene
        rigid = len(self.options.elastic) < scene.mechanism.m or self.options.driven
        return not (rigid or scene.points or scene.stops or scene.friction_bounds)


def batch_of(q: Any, v: Any, tau: Any, time_step: Any) -> tuple[int, ...]:
    """The shape of the leading axes of states; empty if they do not broadcast, an error that a later check raises."""
    try:
        return np.broadcast_shapes(*(np.shape(x)[:-1] for x in (q, v, tau)), np.shape(time_step))
    except ValueError:
        return ()


class RowCoefficients(NamedTuple):
    """Coefficients (…, m) of a mechanism's rows or None, the indices of the rows that have one, and the matrices
    (…, k, k) of constraints, each with its rows."""

    numbers: Any = None
    rows: tuple[int, ...] = ()
    matrices: tuple[tuple[Any, slice], ...] = ()


def by_rows(name: str, mechanism: Mechanism, value: Any, batch: tuple[int, ...] = ()) -> RowCoefficients:
    """Coefficients of rows from a number, an array (…, m), or a mapping from constraints to values.

    The value of a constraint may be a number, an array over its rows, a matrix, or a mapping from its rows to numbers.
    """
    if value is None:
        return RowCoefficients()
    if not isinstance(value, Mapping):
        if np.shape(value)[-2:] == (mechanism.m, mechanism.m) and mechanism.m > 1 and batch[-1:] != (mechanism.m,):
            raise StepError(
                f"{name} has shape {np.shape(value)}; pass a matrix by the name of its constraint, such as "
                f"{{{mechanism.names[0]!r}: matrix}}.",
                code="wrong-shape",
            )
        return RowCoefficients(_not_negative(name, value, mechanism.m), tuple(range(mechanism.m)))
    parts: list[tuple[Any, Any]] = []
    rows: list[int] = []
    matrices: list[tuple[Any, slice]] = []
    for key, own in value.items():
        if key not in mechanism.slices:
            raise UnknownName("constraint", key, mechanism.names, code="unknown-constraint")
        at, label = mechanism.slices[key], f"{name} of {key!r}"
        if not isinstance(own, Mapping) and _is_matrix(label, own, at.stop - at.start, batch):
            matrices.append((_semidefinite(label, own), at))
            parts.append((np.diagonal(matrices[-1][0], axis1=-2, axis2=-1), at))
            rows += range(at.start, at.stop)
            continue
        if not isinstance(own, Mapping):
            parts.append((_not_negative(label, own, at.stop - at.start), at))
            rows += range(at.start, at.stop)
            continue
        chosen = row_indices(key, tuple(own), _row_names(mechanism, key))
        for k, (row, x) in zip(chosen, own.items(), strict=True):
            numbers = np.asarray(x)[..., None] if np.ndim(x) else x
            parts.append((_not_negative(f"{label}, row {row!r},", numbers, 1), [at.start + k]))
            rows.append(at.start + k)
    return RowCoefficients(_scatter_rows(mechanism.m, parts), tuple(rows), tuple(matrices))


def _is_matrix(label: str, value: Any, count: int, batch: tuple[int, ...]) -> bool:
    """Whether values of a constraint are a matrix over its rows; raise if they may also be one array per state."""
    shape = np.shape(value)
    if count == 1 or shape[-2:] != (count, count):
        return False
    if len(shape) == 2 and batch[-1:] == (count,):
        raise StepError(
            f"{label} has shape {shape}, and there are {count} states: this may be one matrix, or {count} values for "
            f"each state. Pass one matrix per state, with shape {(count, count, count)}.",
            code="wrong-shape",
        )
    return True


def _semidefinite(label: str, value: Any) -> NDArray[np.float64]:
    """Matrices (…, k, k), checked to be symmetric and positive semidefinite; a NaN makes only its own state NaN."""
    C = real_array(label, value, "a symmetric matrix")
    known = C[np.isfinite(C).all((-2, -1))] if C.ndim > 2 else C
    if np.any(np.isinf(C)):
        raise StepError(
            f"{label} is a matrix with infinite elements. For dampers without springs, pass one number inf for each "
            "row.",
            code="not-finite",
        )
    size = np.abs(known).max(initial=0.0)
    if np.abs(known - np.swapaxes(known, -1, -2)).max(initial=0.0) > 1e-9 * size:
        raise StepError(
            f"{label} is not symmetric; it must be: a force along row i displaces row j as much as the reverse.",
            code="not-symmetric",
        )
    least = np.linalg.eigvalsh(known).min(initial=0.0) if np.isfinite(size) else 0.0
    if least < -1e-12 * size:
        raise StepError(
            f"{label} has the eigenvalue {least:g}; all eigenvalues must be at least 0, since others add energy.",
            code="not-semidefinite",
        )
    return 0.5 * (C + np.swapaxes(C, -1, -2))


def _row_names(mechanism: Mechanism, key: str) -> tuple[str, ...]:
    """Names of the active rows of a constraint, or their indices if it defines no names."""
    at = mechanism.slices[key]
    rows = getattr(mechanism.constraints[mechanism.names.index(key)], "rows", None)
    if isinstance(rows, tuple) and len(rows) == at.stop - at.start and max(rows) < len(ROW_NAMES):
        return tuple(ROW_NAMES[row] for row in rows)
    return tuple(str(k) for k in range(at.stop - at.start))


def _not_negative(label: str, value: Any, count: int) -> NDArray[np.float64]:
    numbers = real_array(label, value, f"one number, or one for each of {count} rows")
    if numbers.ndim and numbers.shape[-1] != count:
        raise StepError(
            f"{label} has shape {numbers.shape}; its last axis must have length {count}, one value for each row.",
            code="wrong-shape",
        )
    if np.any(numbers < 0.0):
        raise StepError(
            f"{label} is {np.nanmin(numbers):g}; it must be at least 0, since a negative value adds energy.",
            code="out-of-range",
        )
    return numbers if numbers.ndim else np.full(count, float(numbers))


def _finite(label: str, numbers: Any, remedy: str) -> Any:
    if numbers is not None and np.any(np.isinf(numbers)):
        raise StepError(f"{label} is infinite; {remedy}.", code="not-finite")
    return numbers


def _core(label: str, value: Any, count: int) -> NDArray[np.float64]:
    """Values (…, count), with a check of the length of the last axis."""
    numbers = real_array(label, value, f"an array whose last axis has the length {count}")
    if numbers.shape[-1:] != (count,):
        raise StepError(
            f"{label} has shape {numbers.shape}; its last axis must have length {count}.", code="wrong-shape"
        )
    return numbers


def elastic_numbers(
    scene: Scene, compliance: Any, damping: Any, soft: Any, batch: tuple[int, ...] = ()
) -> tuple[RowSprings, tuple[int, ...], tuple[tuple[int, int], ...]]:
    """The springs and dampers of rows, the indices of elastic rows, and the row ranges of constraints with a matrix.

    The springs have `compliance` and `damping` (…, m) over all rows of the scene, and `compliance_matrix` (…, m, m) if
    a constraint has a matrix. `soft` (…, points) is the compliance of contacts, or None.
    """
    own = scene.mechanism
    C, named, matrices = by_rows("compliance", own, compliance, batch)
    B, damped, crossed = by_rows("damping", own, damping, batch)
    if crossed:
        raise StepError("damping is a matrix; pass one value for each row of a constraint.", code="wrong-shape")
    _finite("damping", B, "omit the compliance for a rigid constraint")
    rigid = set(damped) - set(named) if isinstance(damping, Mapping) or C is None else set()
    if rigid:
        name = next(name for name, at in own.slices.items() if at.start <= min(rigid) < at.stop)
        raise StepError(
            f"constraint {name!r} has damping but no compliance: it is rigid, and a rigid constraint has no damping. "
            "Pass compliance=inf for a damper without a spring.",
            code="conflicting-arguments",
        )
    if C is not None and np.any(np.isinf(C)) and (B is None or np.any(np.isinf(C) & ~(B > 0.0))):
        raise StepError(
            "compliance is infinite in a row without damping: such a row exerts no force. Omit it, or pass a damping.",
            code="conflicting-arguments",
        )
    rows = tuple(scene.bilateral.start + k for k in named)
    springs, start = RowSprings(), scene.bilateral.start
    if C is not None or soft is not None:
        parts = [(C, scene.bilateral), (soft, list(scene.normals))]
        springs = springs._replace(compliance=_scatter_rows(scene.m, [(x, at) for x, at in parts if x is not None]))
    if B is not None:
        springs = springs._replace(damping=_scatter_rows(scene.m, [(B, scene.bilateral)]))
    coupled = tuple((start + at.start, start + at.stop) for _, at in matrices)
    if matrices:
        leading = np.broadcast_shapes(*(matrix.shape[:-2] for matrix, _ in matrices))
        whole = np.zeros((*leading, scene.m, scene.m))
        for (matrix, _), (first, last) in zip(matrices, coupled, strict=True):
            whole[..., first:last, first:last] = matrix
        springs = springs._replace(compliance_matrix=whole)
    return springs, tuple(sorted(rows)), coupled


def _scatter_rows(m: int, parts: list[tuple[Any, Any]]) -> NDArray[np.float64]:
    batch = np.broadcast_shapes(*(np.shape(x)[:-1] for x, _ in parts))
    result = np.zeros((*batch, m))
    for x, at in parts:
        result[..., at] = x
    return result


def check_blends(scene: Scene, alpha: Any, beta: Any, elastic: tuple[int, ...], compliance: Any) -> None:
    """Raise if α or β makes the equation of a row independent of the new velocity."""
    start = scene.bilateral.start
    held = any(
        constraint.has_reference and any(start + k not in elastic for k in range(at.start, at.stop))
        for constraint, at in zip(scene.mechanism.constraints, scene.mechanism.row_ranges(), strict=True)
    )
    if np.any(beta <= EXPLICIT) and (held or scene.points or scene.stops):
        raise StepError(
            f"beta is {np.min(beta):g}: positions then do not depend on the new velocity, so constraints cannot "
            "act on them. Rigid "
            "constraints and contacts need beta > 0, such as 1; elastic constraints do not.",
            code="conflicting-arguments",
        )
    explicit = np.any((alpha <= EXPLICIT) | (beta <= EXPLICIT))
    if explicit and elastic and np.any(compliance[..., list(elastic)] == 0.0):
        raise StepError(
            "alpha or beta is zero, and an elastic constraint has the compliance 0: an explicit spring needs a finite "
            "stiffness. Pass alpha = beta = 1, or omit the compliance, which makes the constraint rigid.",
            code="conflicting-arguments",
        )


def servo_numbers(model: Model, servos: ServoOptions) -> Servo:
    """Check the options of servos and convert them to inputs of kernels."""
    result = Servo()
    for name in ("stiffness", "damping"):
        value = getattr(servos, name)
        if value is not None:
            numbers = _not_negative(f"servo_{name}", value, model.nv)
            _finite(f"servo_{name}", numbers, "drive the joint instead with driven=, or lock it with a JointLock")
            result = result._replace(**{name: numbers})
    if (servos.stiffness is None) != (servos.target is None):
        missing = "servo_target" if servos.target is None else "servo_stiffness"
        raise StepError(
            f"{missing} is missing: a servo needs both a target and a stiffness. Pass both or neither.",
            code="missing-argument",
        )
    return result if servos.target is None else result._replace(target=_core("servo_target", servos.target, model.nq))


def read_driven(model: Model, velocity: Any) -> tuple[NDArray[np.float64] | None, tuple[int, ...]]:
    """Prescribed velocities (…, nv) after the step, from a mapping from joints to velocities, and the indices of the
    driven velocities; None and an empty tuple if no joint is driven."""
    if velocity is None:
        return None, ()
    if not isinstance(velocity, Mapping):
        raise StepError(
            f"driven is {velocity!r}; it must be a mapping from joints to velocities, such as {{'crank': 2.0}}.",
            code="wrong-type",
        )
    dofs = {name: locked_velocities(model, [name]) for name in velocity}
    parts = []
    for name, x in velocity.items():
        label, count = f"driven[{name!r}]", len(dofs[name])
        own = real_array(label, x, "a velocity, or one for each state") if count == 1 else _core(label, x, count)
        parts.append((own[..., None] if count == 1 else own, list(dofs[name])))
    result = _scatter_rows(model.nv, parts)
    return result, tuple(sorted({k for own in dofs.values() for k in own}))


def solver_inputs(scene: Scene, solver: SolverOptions) -> SolverInputs:
    """Check the options of a solver and convert them to inputs of kernels."""
    iteration_count("iterations", solver.iterations)
    tolerance = number_in_range("tolerance", solver.tolerance, TOLERANCES)
    start = None if solver.start is None else _core("start", solver.start, scene.m)
    return SolverInputs(start, tolerance, float(solver.iterations))
