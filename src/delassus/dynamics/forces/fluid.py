"""Forces of a medium on bodies, as MuJoCo computes them: passive forces that depend on velocities.

Let v and ω be the velocity and the angular velocity of a shape relative to the medium, in the shape's axes, ρ the
density and μ the viscosity. Force and moment on a box with sides b are, along each axis i, with j and k the others,

    f_i = -3 π μ d v_i - ½ ρ b_j b_k |v_i| v_i
    n_i = -π μ d³ ω_i - 1/64 ρ b_i (b_j⁴ + b_k⁴) |ω_i| ω_i        d = (b_1 + b_2 + b_3) / 3

Those on an ellipsoid are added mass, lift and drag, see `_ellipsoid`. The medium is everywhere and exerts no buoyancy.

Cost: O(n d) for n shapes at depth d, about 150 operations for a box and 400 for an ellipsoid.
"""

from __future__ import annotations

from math import pi
from typing import Any, Final

import numpy

import delassus.numpy as np
from delassus.dynamics.kinematics.kinematics import world_poses
from delassus.dynamics.tree.poses import Pair, fixed_pose, poses_of
from delassus.dynamics.tree.recursion import joint_motions, link_velocities
from delassus.dynamics.tree.sums import add_torques
from delassus.model.links import links_of
from delassus.model.model import Model
from delassus.model.parts import WORLD, ImmersedShape, Medium

_LEAST: Final = 1e-15
"""The lower bound of denominators."""


def fluid_forces(model: Model, q: Any, v: Any) -> Any:
    """The generalized forces f (nv,) [N·m, N] of the medium of a model."""
    medium, tree, total = model.medium, links_of(model), np.zeros(model.nv)
    poses, wind = poses_of(tree, q), np.array(medium.wind)
    velocity, _ = link_velocities(tree, poses, joint_motions(tree, v))
    world = world_poses(tree, q) if any(medium.wind) else []
    on_links: list[Pair | None] = [None] * len(tree.links)
    for shape in medium.shapes:
        link, placement = tree.place(shape.joint, shape.placement)
        if link == WORLD:
            continue
        pose = fixed_pose(placement)
        lin, ang = pose.motion_to_child(*velocity[link])
        if world:
            lin = lin - placement.R.T @ (world[link][0].T @ wind)
        force = pose.force_to_parent(*shape_force(medium, shape, lin, ang))
        on_links[link] = _sum(on_links[link], force)
    for i in reversed(range(len(tree.links))):
        link_shapes, moving = on_links[i], tree.links[i]
        if link_shapes is None:
            continue
        S_lin, S_ang = moving.subspace
        add_torques(total, moving, S_lin.T @ link_shapes[0] + S_ang.T @ link_shapes[1])
        if moving.parent != WORLD:
            on_links[moving.parent] = _sum(on_links[moving.parent], poses[i].force_to_parent(*link_shapes))
    return total


def shape_force(medium: Medium, shape: ImmersedShape, lin: Any, ang: Any) -> Pair:
    """Force (3,) [N] and moment (3,) [N·m] on a shape, from its velocity relative to the medium, all in its axes."""
    return (_ellipsoid if shape.coefficients else _box)(medium, shape, lin, ang)


def _sum(one: Pair | None, other: Pair) -> Pair:
    return other if one is None else (one[0] + other[0], one[1] + other[1])


def _box(medium: Medium, shape: ImmersedShape, lin: Any, ang: Any) -> Pair:
    b = numpy.array(shape.lengths)
    diameter, b_j, b_k = float(b.mean()), numpy.roll(b, -1), numpy.roll(b, -2)
    viscous, area = 3.0 * pi * medium.viscosity * diameter, 0.5 * medium.density * b_j * b_k
    turning = pi * medium.viscosity * diameter**3
    moment = medium.density * b * (b_j**4 + b_k**4) / 64.0
    return -viscous * lin - area * np.abs(lin) * lin, -turning * ang - moment * np.abs(ang) * ang


def _ellipsoid(medium: Medium, shape: ImmersedShape, lin: Any, ang: Any) -> Pair:
    """Force and moment on an ellipsoid: added mass, Magnus and Kutta lift, Stokes drag, blunt and slender drag."""
    blunt, slender, angular, kutta, magnus = shape.coefficients
    a, density = numpy.array(shape.lengths), medium.density
    _, middle, largest = numpy.sort(a)
    momentum = density * numpy.array(shape.added_mass) * lin
    spin = density * numpy.array(shape.added_inertia) * ang
    force = np.cross(momentum, ang) + magnus * density * (4.0 / 3.0 * pi * a.prod()) * np.cross(ang, lin)
    moment = np.cross(momentum, lin) + np.cross(spin, ang)

    speed = _length(lin)
    normal = (numpy.roll(a, -1) * numpy.roll(a, -2)) ** 2 * lin  # of the cross section, not of unit length
    square, normal_speed = normal @ normal, normal @ lin
    area = pi * np.sqrt(square / np.maximum(normal_speed, _LEAST))  # the body's projection along its velocity
    incidence = normal_speed / np.maximum(speed * square, _LEAST)
    circulation = kutta * density * incidence * area * np.cross(normal, lin)
    force = force + np.cross(circulation, lin)

    diameter, broadside = 2.0 / 3.0 * float(a.sum()), pi * largest * middle
    moments = 8.0 / 15.0 * pi * a * numpy.maximum(numpy.roll(a, -1), numpy.roll(a, -2)) ** 4
    greatest = 8.0 / 15.0 * pi * middle * largest**4
    resistance = (angular * moments + slender * (greatest - moments)) * ang
    drag = 3.0 * pi * diameter * medium.viscosity
    drag = drag + density * speed * (blunt * area + slender * (broadside - area))
    angular_drag = pi * diameter**3 * medium.viscosity + density * _length(resistance)
    return force - drag * lin, moment - angular_drag * ang


def _length(x: Any) -> Any:
    """|x|, with a finite derivative at x = 0."""
    return np.sqrt(np.maximum(x @ x, _LEAST**2))
