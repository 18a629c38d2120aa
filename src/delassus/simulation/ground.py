"""`Ground`: a plane or a height field with friction and restitution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delassus.common.checks import FRICTIONS, RESTITUTIONS, Range, numbers_in_range, positive_number, real_array
from delassus.common.frozen import read_only
from delassus.common.options import Shortcuts
from delassus.contact.cones.parameters import ContactParameters
from delassus.errors import OutOfRange
from delassus.geometry.fields import Field
from delassus.simulation.checks import SimulationError
from delassus.simulation.options import GroundPlane, HeightField
from delassus.step.laws.inputs import group_inputs
from delassus.step.selection.collision_pairs import FRICTION
from delassus.step.stages.types import GroundShape

HIGHEST: Final = 1e6
"""Largest magnitude of a height of a height field [m]."""

COEFFICIENTS: Final = ("friction", "torsional", "rolling")


_UP: Final = np.array([0.0, 0.0, 1.0])


_SHORTCUTS: Final = Shortcuts("Ground", material=ContactParameters(), plane=GroundPlane(), height_field=HeightField())


@dataclass(frozen=True, eq=False, init=False)
class Ground:
    """The ground: a plane, or heights on a grid.

    Friction, restitution, normal and height may be arrays with the batch axes of the environments, so that each
    environment has its own ground. New values do not compile the step again, with one exception: level ground at
    height zero is a special case, so the first slope and the first other height compile once. Coefficients of
    friction apply to all contacts except those with MJCF's condim 1, which have no friction.

    Attributes:
        friction: (…) coefficient of Coulomb friction, zero or more; None for the coefficients of the model's file, or
            0.7 for shapes without one.
        restitution: (…) ratio of the normal speeds after and before an impact, from 0 to 1.
        normal: (…, 3) direction of a plane, of any length: (-sin a, 0, cos a) rises along x at the angle a.
        height: (…) of a plane, its distance from the world's origin along the normal [m].
        heights: (rows, columns) of a height field [m], rows along x and columns along y, instead of a plane. A cell is
            two triangles that share the diagonal from its first to its last point.
        spacing: Distance between neighboring points of the height field [m]; a pair for x and y.
        origin: Position (x, y) of its first point [m]; by default its center is at the world's origin.
        torsional: (…) coefficient of torsional friction [m]: the largest moment about the normal, divided by the
            normal force; None for the coefficients of the model's file, or zero for shapes without one.
        rolling: (…) coefficient of rolling friction [m]: as torsional, for moments about the tangents.

    >>> float(dl.Ground(friction=0.7).friction)
    0.7
    """

    friction: ArrayLike | None
    restitution: ArrayLike
    normal: ArrayLike
    height: ArrayLike
    heights: Any
    spacing: float | tuple[float, float]
    origin: tuple[float, float] | None
    torsional: ArrayLike | None
    rolling: ArrayLike | None

    def __init__(
        self,
        friction: ArrayLike | None = None,
        restitution: ArrayLike = 0.0,
        *,
        material: ContactParameters | None = None,
        plane: GroundPlane | None = None,
        height_field: HeightField | None = None,
        **shortcuts: Any,
    ) -> None:
        """Create a ground.

        Args:
            friction: (…) coefficient of Coulomb friction.
            restitution: (…) from 0 to 1, by default 0.
            material: A `ContactParameters` with these two, torsional and rolling.
            plane: A `GroundPlane`: normal, height.
            height_field: A `HeightField`: heights, spacing, origin.
            **shortcuts: torsional, rolling (material); normal, height (plane); heights, spacing, origin (height_field).
        """
        arguments = {"friction": friction, **shortcuts}
        if material is not None and not np.array_equal(restitution, 0.0):
            arguments["restitution"] = restitution  # must be the material's
        surface, level, field = _SHORTCUTS.fill(arguments, material=material, plane=plane, height_field=height_field)
        if surface.compliance is not None:
            raise SimulationError(
                "the ground has a compliance, which simulations do not support: omit it.", code="not-supported"
            )
        values = {**surface._asdict(), **vars(level), **vars(field)}
        values["restitution"] = restitution if surface.restitution is None else surface.restitution
        for name in self.__dataclass_fields__:
            object.__setattr__(self, name, values[name])
        self._check()

    def _check(self) -> None:
        object.__setattr__(
            self, "restitution", _check_values("the ground's restitution", self.restitution, RESTITUTIONS)
        )
        for name in ("normal", "height"):
            object.__setattr__(self, name, np.array(real_array(f"the ground's {name}", getattr(self, name))))
        for name in COEFFICIENTS:
            self._check_coefficient(name)
        normal = np.asarray(self.normal)
        if normal.shape[-1:] != (3,) or not np.all(np.isfinite(normal)) or np.any(~np.any(normal, -1)):
            raise SimulationError(
                f"the ground's normal is {normal.tolist()}; it must be a direction (x, y, z), such as (0, 0, 1).",
                code="zero-direction",
            )
        normal = normal / np.abs(normal).max(-1, keepdims=True)
        object.__setattr__(self, "normal", normal / np.linalg.norm(normal, axis=-1, keepdims=True))
        if not np.all(np.isfinite(np.asarray(self.height))):
            raise SimulationError(f"the ground's height is {self.height!r} m; it must be finite.", code="not-finite")
        if self.heights is not None:
            self._check_field()
        self.batch  # noqa: B018 - refuses axes that do not fit
        for name in ("restitution", "normal", "height", "heights", *COEFFICIENTS):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, read_only(getattr(self, name)))

    def _check_coefficient(self, name: str) -> None:
        coefficient = getattr(self, name)
        if coefficient is None:
            return
        what = "friction" if name == "friction" else f"{name} friction"
        object.__setattr__(self, name, _check_values(f"the ground's {what}", coefficient, FRICTIONS))

    def _check_field(self) -> None:
        heights = np.array(real_array("the ground's heights", self.heights), order="C")
        if heights.ndim != 2 or min(heights.shape) < 2 or not np.all(np.isfinite(heights)):
            raise SimulationError(
                f"the ground's heights have shape {heights.shape}; they must be finite, on a grid of at least 2 × 2.",
                code="wrong-shape",
            )
        if np.abs(heights).max() > HIGHEST:
            raise SimulationError(
                f"the ground's heights reach {np.abs(heights).max():.3g} m; they must be at most {HIGHEST:g} m.",
                code="out-of-range",
            )
        if np.any(self.height) or np.any(np.asarray(self.normal)[..., :2]):
            raise SimulationError(
                "the ground's heights describe a height field, and height and normal describe a plane: pass one of "
                "them. A height can be added to the heights.",
                code="conflicting-arguments",
            )
        what = "the spacing [m] of the ground's heights"
        spacing = real_array(what, self.spacing, "a number, or two for x and y")
        if spacing.shape not in ((), (2,)):
            raise SimulationError(
                f"{what} has shape {spacing.shape}; it must be a number, or two for x and y.", code="wrong-shape"
            )
        spacings = [positive_number(what, x) for x in np.broadcast_to(spacing, 2).tolist()]
        object.__setattr__(self, "spacing", tuple(spacings) if spacing.ndim else spacings[0])
        object.__setattr__(self, "heights", heights)
        if self.origin is None:
            rows, columns = heights.shape
            middle = (-0.5 * spacings[0] * (rows - 1), -0.5 * spacings[1] * (columns - 1))
            object.__setattr__(self, "origin", middle)
        origin = real_array("the origin of the ground's heights", self.origin)
        if origin.shape != (2,) or not np.all(np.isfinite(origin)):
            raise SimulationError(
                f"the origin of the ground's heights is {self.origin}; it must be (x, y) [m].", code="wrong-shape"
            )
        object.__setattr__(self, "origin", (float(origin[0]), float(origin[1])))

    @property
    def field(self) -> Field | None:
        """The grid of the height field, None for a plane."""
        if self.heights is None or self.origin is None:
            return None
        (x, y), (rows, columns) = self.origin, self.heights.shape
        along_x, along_y = np.broadcast_to(self.spacing, 2).tolist()
        return Field(rows, columns, (along_x, along_y), (float(x), float(y)))

    @property
    def coefficients(self) -> tuple[Any, Any, Any]:
        """Sliding, torsional and rolling friction (…); None for that of the model's file."""
        return self.friction, self.torsional, self.rolling

    @property
    def batch(self) -> tuple[int, ...]:
        """Batch axes of the ground, empty if all environments share it."""
        rubbing = [x for x in (self.friction, self.torsional, self.rolling) if x is not None]
        shapes = [np.shape(x) for x in (*rubbing, self.restitution, self.height)] + [np.shape(self.normal)[:-1]]
        try:
            return np.broadcast_shapes(*shapes)
        except ValueError:
            raise SimulationError(
                f"the ground's friction, restitution, height and normal have the batch axes {shapes}, which do not "
                "broadcast.",
                code="batch-mismatch",
            ) from None

    @property
    def geometry(self) -> dict[str, Any]:
        """Geometric inputs of kernels. A level normal and a height of zero are compiled in, and left out."""
        if self.heights is not None:
            return {"heights": self.heights}
        inputs = {"normal": self.normal} if np.shape(self.normal) != (3,) or np.any(self.normal != _UP) else {}
        return inputs | ({"height": self.height} if np.shape(self.height) or self.height else {})

    @property
    def shape(self) -> GroundShape:
        """The geometry of the ground as an input of kernels."""
        return GroundShape(**self.geometry)

    @property
    def inputs(self) -> dict[str, NDArray[np.float64]]:
        """All inputs of kernels, by the names of the fields of `structures`."""
        friction = np.asarray(FRICTION if self.friction is None else self.friction)
        others = {name: np.asarray(getattr(self, name)) for name in COEFFICIENTS[1:] if np.any(getattr(self, name))}
        return {"friction": friction, "restitution": np.asarray(self.restitution), **others, **self.geometry}


def structures(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Group inputs by name into the structures `material` and `ground` of kernels."""
    return group_inputs(inputs, {"material": ContactParameters, "ground": GroundShape})


def _check_values(what: str, x: Any, within: Range) -> NDArray[np.float64]:
    """Values in a range. NaN raises an error, since no state exists yet that could be flagged."""
    values = np.array(numbers_in_range(what, x, within))
    if np.isnan(values).any():
        raise OutOfRange(f"{what} contains NaN; it must be {within.form}.", code=within.code)
    return values
