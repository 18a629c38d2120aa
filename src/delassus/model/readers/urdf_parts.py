"""What single URDF elements mean: origins, inertias, kinds of joints, limits."""

from __future__ import annotations

from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from delassus.errors import short
from delassus.model.joints import Free, JointKind, Planar, Prismatic, Revolute
from delassus.model.moments import principal_moments, violates_triangle
from delassus.model.placement import ZERO, Inertia, Placement, Vector, rotation_from_rpy, vector
from delassus.model.readers.documents.xml import Element

NO_LIMIT = float("inf")
JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
_PRODUCTS = ("ixy", "ixz", "iyz")
_MOMENTS = ("ixx", "iyy", "izz")


class Limits(TypedDict, total=False):
    """The fields of `Joint` that come from <limit> and <dynamics>; one that is absent means none."""

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    velocity_limit: tuple[float, ...]
    effort_limit: tuple[float, ...]
    damping: tuple[float, ...]
    friction: tuple[float, ...]


def origin(owner: Element) -> Placement:
    """The placement that the <origin> of an element gives: xyz [m] and rpy [rad], or quat_xyzw of URDF 1.1."""
    element = owner.child("origin")
    if element is None:
        return Placement()
    xyz = element.measures("xyz", 3, ZERO)
    if element.get("quat_xyzw") is None:
        # Adding zero turns -0 into 0, so that models compare equal whichever way their zeros were written.
        return Placement.of(rotation_from_rpy(element.measures("rpy", 3, ZERO)) + 0.0, xyz)
    if element.get("rpy") is not None:
        raise element.error("both rpy and quat_xyzw are given; keep one of them.", code="conflicting-arguments")
    quaternion = _unit(np.array(element.numbers("quat_xyzw", 4)))
    if quaternion is None:
        raise element.error(
            "quat_xyzw is zero; a rotation is a quaternion of length 1, such as 0 0 0 1.", code="zero-direction"
        )
    x, y, z, w = quaternion.tolist()
    rotation = [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - z * w), 2.0 * (x * z + y * w)],
        [2.0 * (x * y + z * w), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - x * w)],
        [2.0 * (x * z - y * w), 2.0 * (y * z + x * w), 1.0 - 2.0 * (x * x + y * y)],
    ]
    return Placement.of(np.array(rotation) + 0.0, xyz)


def _unit(x: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """A vector with length 1, None if it is zero."""
    largest = abs(x).max()
    if largest == 0.0:
        return None
    x = x / largest  # squares of numbers up to 1 neither overflow nor vanish all together
    return x / np.linalg.norm(x)


def inertia(link: Element) -> Inertia:
    """The inertia of a link in its own frame; a link without <inertial> has no mass."""
    inertial = link.child("inertial")
    if inertial is None:
        return Inertia()
    mass_element, moments_element = inertial.child("mass"), inertial.child("inertia")
    if mass_element is None or moments_element is None:
        missing = "mass" if mass_element is None else "inertia"
        raise inertial.error(
            f"<{missing}> is missing; without any inertia leave out the whole <inertial>.", code="missing-element"
        )
    (mass,) = mass_element.measures("value", 1)
    if mass < 0.0:
        raise mass_element.error(f"the mass is {mass:g} kg; it must not be negative.", code="out-of-range")
    ixx, iyy, izz = (moments_element.measures(name, 1)[0] for name in _MOMENTS)
    ixy, ixz, iyz = (moments_element.measures(name, 1, (0.0,))[0] for name in _PRODUCTS)
    rotational = np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])
    return Inertia.of(mass, ZERO, rotational).transform(origin(inertial))


def triangle_warning(link: Element, body: Inertia) -> list[str]:
    """A sentence if one principal moment exceeds the sum of the two others, which no distribution of mass has."""
    if not violates_triangle(body):
        return []
    small, middle, large = principal_moments(body)
    return [
        f"{link.file}:{link.line}: link {short(link.need('name'))!r} has the principal moments {small:.4g}, "
        f"{middle:.4g}, {large:.4g} kg·m²; of a body, the largest is at most the sum of the others."
    ]


def joint_kind(joint: Element) -> JointKind | None:
    """The kind of a joint; None if it is fixed."""
    kind = joint.get("type")
    if kind not in JOINT_TYPES:
        raise joint.error(
            f"the joint type {short(kind or '')!r} is unknown; it must be one of {', '.join(JOINT_TYPES)}.",
            code="unknown-option",
        )
    if kind == "fixed":
        return None
    if kind == "floating":
        return Free()
    direction = _axis(joint)
    if kind == "planar":
        return Planar(direction)
    return Prismatic(direction) if kind == "prismatic" else Revolute(direction, kind == "continuous")


def _axis(joint: Element) -> Vector:
    """The unit vector of <axis>, x if there is none."""
    element = joint.child("axis")
    if element is None:
        return (1.0, 0.0, 0.0)
    direction = _unit(np.array(element.numbers("xyz", 3, (1.0, 0.0, 0.0))))
    if direction is None:
        raise element.error("the axis is 0 0 0; a joint needs a direction, such as 0 0 1.", code="zero-direction")
    return vector(direction)


def limits(joint: Element, kind: JointKind, warnings: list[str]) -> Limits:
    """Limits, damping and dry friction of a joint with one coordinate; planar and floating joints have none in URDF."""
    if not isinstance(kind, Revolute | Prismatic):
        return {}
    where = f"{joint.file}:{joint.line}: joint {short(joint.need('name'))!r}"
    limit, dynamics = joint.child("limit"), joint.child("dynamics")
    lower, upper = -NO_LIMIT, NO_LIMIT
    if not (isinstance(kind, Revolute) and kind.continuous):
        if limit is None:
            warnings.append(f"{where} is {kind.label} and has no <limit>, so it moves without bounds.")
        else:
            lower, upper = _range(limit, where, warnings)
    return Limits(
        lower=(lower,),
        upper=(upper,),
        velocity_limit=_magnitude(limit, "velocity", where, warnings),
        effort_limit=_magnitude(limit, "effort", where, warnings),
        damping=_coefficient(dynamics, "damping"),
        friction=_coefficient(dynamics, "friction"),
    )


def _range(limit: Element, where: str, warnings: list[str]) -> tuple[float, float]:
    """`lower` and `upper`; URDF says that one that is not written is 0."""
    lower, upper = limit.number("lower", 0.0), limit.number("upper", 0.0)
    if lower > upper:
        raise limit.error(
            f"lower is {lower:g} and upper is {upper:g}; lower must not be above upper.", code="empty-interval"
        )
    if limit.get("lower") is None and limit.get("upper") is None:
        warnings.append(f"{where} has a <limit> without lower and upper, which URDF takes as 0, so it cannot move.")
    return lower, upper


def _magnitude(limit: Element | None, name: str, where: str, warnings: list[str]) -> tuple[float, ...]:
    if limit is None or limit.get(name) is None:
        return ()
    value = limit.number(name)
    if value < 0.0:
        warnings.append(f"{where} has the {name} limit {value:g}; a magnitude is not negative, so it counts as none.")
        return ()
    return (value,)


def _coefficient(dynamics: Element | None, name: str) -> tuple[float, ...]:
    value = dynamics.number(name, 0.0) if dynamics is not None else 0.0
    return (value,) if value != 0.0 else ()
