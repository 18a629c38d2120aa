"""The rooms that move a robot through time, each behind one call, so that one suite of physics can hold them all.

A `Room` has a name, what it supports, and `rollout(model, q, v, h, steps, **physics)`, which gives times (steps + 1,),
configurations (steps + 1, …, nq) and velocities (steps + 1, …, nv), the start included; `Physics` lists what there is
besides. To add a room, write how it rolls and list it in `ROOMS`. To leave something out of what a room is held to,
take it from what the room supports.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

import delassus as dl
import delassus.particles as P

Rollout = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Physics:
    """What acts on a model besides gravity, its constraints, springs and dampers. There is no ground without contacts.

    Attributes:
        contacts: For rooms that are told points; rooms with shapes find theirs on the model's.
        touching: Names or patterns of the shapes that touch the ground, for rooms with shapes.
        colliding: Pairs of names of shapes that touch each other, for rooms with shapes.
        friction, restitution: Of all contacts, a number or one for each item of the batch.
        normal: (3,) or (…, 3) of the ground, which goes through the origin.
        servo: Stiffness and damping of servos in all joints, and the configuration that they pull to.
        limits: Whether joints end at their limits; those of `Simulation` always do.
        joint_friction: Whether joints have the dry friction of the model.
        options: Keywords of the room's own.
    """

    contacts: Any = ()
    touching: Any = "*"
    colliding: Any = ()
    friction: Any = 0.0
    restitution: Any = 0.0
    normal: Any = (0.0, 0.0, 1.0)
    servo: Any = None
    limits: bool = False
    joint_friction: bool = False
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def on_ground(self) -> bool:
        return any(contact.against == "world" for contact in self.contacts)

    @property
    def of_points(self) -> dict[str, Any]:
        """The arguments of rooms that are told points: numbers of an item are those of each of its points."""
        if not self.contacts:
            return {"limits": self.limits, "joint_friction": self.joint_friction}
        return {
            "contacts": self.contacts,
            "friction": np.asarray(self.friction, float)[..., None],
            "restitution": np.asarray(self.restitution, float)[..., None],
            "normal": np.asarray(self.normal, float)[..., None, :],
            "limits": self.limits,
            "joint_friction": self.joint_friction,
        }


@dataclass(frozen=True)
class Room:
    """One way to step a model through time.

    Attributes:
        name: What tests print.
        supports: What it claims; see `rooms`.
        lag: By how many half steps velocities are behind configurations: 1 for q⁺ = q ⊕ h v⁺, 0 for q ⊕ h (v + v⁺)/2.
        roll: (model, q, v, h, steps, physics) -> (t, q, v).
        tolerance: What a motion may be off by its choice of steps, relative; 0 where steps have the length h.
        batch: How many items a test should ask for at most; those that step one by one are slow.
    """

    name: str
    supports: frozenset[str]
    lag: float
    roll: Callable[..., Rollout]
    tolerance: float = 0.0
    batch: int = 10_000

    def rollout(self, model: Any, q: Any, v: Any, h: float, steps: int, **physics: Any) -> Rollout:
        """Times, configurations and velocities; `physics` as `Physics` has them."""
        return self.roll(model, np.array(q, float), np.array(v, float), h, steps, Physics(**physics))

    def before(self, h: float, v: Any, a: Any) -> np.ndarray:
        """The velocities, `lag` half steps before, of a start with velocities v and accelerations a."""
        return np.asarray(v, float) - 0.5 * self.lag * h * np.asarray(a, float)


# --- rooms ------------------------------------------------------------------------------------------------------------


def _model_of(mechanism: Any) -> dl.Model:
    return mechanism.model if isinstance(mechanism, dl.Mechanism) else mechanism


def _stack(h: float, states: list[tuple[Any, Any]]) -> Rollout:
    q, v = (np.stack(x) for x in zip(*states, strict=True))
    return h * np.arange(len(states)), q, v


def _roll_simulation(model, q, v, h, steps, physics) -> Rollout:
    sim = dl.Simulation(
        model,
        dl.Ground(friction=physics.friction, restitution=physics.restitution, normal=physics.normal),
        h,
        actuators=physics.servo and dl.simulation.position_servos(_model_of(model), *physics.servo[:2]),
        touching=physics.touching if physics.on_ground else (),
        colliding=physics.colliding,
        joint_friction=physics.joint_friction,
        **physics.options,
    )
    log = sim.run(q, v, control=physics.servo and physics.servo[2], steps=steps)
    return np.array(log.time), np.array(log.q), np.array(log.v)


def _roll_softly(model, q, v, h, steps, physics) -> Rollout:
    """By MuJoCo's law, whose contacts sink in and creep, and whose limits and loops give way."""
    return _roll_simulation(model, q, v, h, steps, replace(physics, options={"law": "mujoco"} | physics.options))


def _roll_compliant(model, q, v, h, steps, physics) -> Rollout:
    servo = {}
    if physics.servo:
        servo = dict(zip(("servo_stiffness", "servo_damping", "servo_target"), physics.servo, strict=True))
    tau, states = np.zeros(v.shape), [(q, v)]
    for _ in range(steps):
        options = {"alpha": 1.0, "beta": 1.0} | physics.of_points | servo | physics.options
        step = dl.stepping.compliant_step(model, *states[-1], tau, time_step=h, **options)
        states.append((step.q, step.v))
    return _stack(h, states)


def _roll_middle(model, q, v, h, steps, physics) -> Rollout:
    options = {"alpha": 1.0, "beta": 0.5, "midpoint": True} | physics.options
    return _roll_compliant(model, q, v, h, steps, replace(physics, options=options))


def _roll_contact_dynamics(model, q, v, h, steps, physics) -> Rollout:
    states = [(q, v)]
    for _ in range(steps):
        tau = dl.dynamics.passive_forces(_model_of(model), *states[-1])
        step = dl.contact_dynamics(model, *states[-1], tau, time_step=h, **physics.of_points, **physics.options)
        states.append((step.q, step.velocity))
    return _stack(h, states)


def _roll_motion(model, q, v, h, steps, physics) -> Rollout:
    tau = None
    if physics.servo:
        stiffness, damping, target = physics.servo
        tau = lambda time, q, v: stiffness * (target - q) - damping * v  # noqa: E731
    log = dl.simulate_motion(model, q, v, tau, times=h * np.arange(steps + 1), tolerance=1e-10, **physics.options)
    return np.array(log.time), np.array(log.q), np.array(log.v)


def _roll_particles(model, q, v, h, steps, physics) -> Rollout:
    """Free boxes are bricks; a mass on a rail along x is a particle on a spring."""
    batch = q.shape[:-1]
    friction, normal = np.broadcast_to(physics.friction, batch), np.broadcast_to(physics.normal, (*batch, 3))
    runs = []
    for item in np.ndindex(batch):
        obstacles = [P.Plane(tuple(normal[item]))] if physics.on_ground else []
        system = _as_particles(model, q[item], {"obstacles": obstacles, "friction": float(friction[item])})
        state = P.initial_state(system, v=_velocities_of(model, q[item], v[item]))
        options = {"contact_tolerance": 1e-9} | physics.options
        runs.append(_states_of(model, P.simulate_particles(system, state, time_step=h, steps=steps, **options)))
    q, v = (np.stack(x, 1).reshape(steps + 1, *batch, -1) for x in zip(*runs, strict=True))
    return h * np.arange(steps + 1), q, v


def _roll_particles_middle(model, q, v, h, steps, physics) -> Rollout:
    return _roll_particles(model, q, v, h, steps, replace(physics, options={"alpha": 0.5, "beta": 0.5}))


_SPRUNG = frozenset({"spring", "damper"})
_PASSIVE = _SPRUNG | {"tendon"}
_TOUCH = frozenset({"contact", "friction", "collision"})
_BODIES = frozenset({"box", "spin", "free", "tree", "loop", "closed"})
_ALL = _BODIES | _PASSIVE | _TOUCH | {"restitution", "servo", "limit", "dry", "one-sided"}

ROOMS = (
    Room("Simulation", _ALL, 1.0, _roll_simulation),
    Room("Simulation law=mujoco", frozenset({"box", "spin", "free", "servo"}) | _PASSIVE, 1.0, _roll_softly),
    Room("compliant_step", _ALL | {"reflections"}, 1.0, _roll_compliant),
    Room("compliant_step midpoint", _BODIES | _PASSIVE, 0.0, _roll_middle),
    Room("contact_dynamics", _ALL - {"servo", "closed", "tree"}, 1.0, _roll_contact_dynamics),
    Room("simulate_motion", _BODIES | _PASSIVE | {"servo"}, 0.0, _roll_motion, tolerance=1e-9),
    Room("particles", _TOUCH | _SPRUNG | {"box"}, 1.0, _roll_particles, batch=1),
    Room("particles midpoint", _SPRUNG | {"box"}, 0.0, _roll_particles_middle, batch=1),
)


def rooms(*needs: str) -> pytest.MarkDecorator:
    """A test for each room that supports all of these.

    box, free       free bodies: boxes, and bodies of any inertia
    spin            free bodies that keep the energy of their spin
    tree            robots of many joints
    contact, friction, restitution      with the ground; "collision" with each other
    reflections     blows that travel through bodies which touch
    spring, damper  of joints; "tendon" for those of tendons over joints
    servo, limit, dry       of joints: servos, limits, dry friction
    one-sided       constraints g(q) ≥ 0, such as ropes
    loop, closed    closed loops, and loops that stay closed without being asked
    """
    able = [room for room in ROOMS if room.supports.issuperset(needs)]
    return pytest.mark.parametrize("room", able, ids=lambda room: room.name)


# --- models as particles ----------------------------------------------------------------------------------------------


def _as_particles(model: dl.Model, q: np.ndarray, options: dict[str, Any]) -> P.Particles:
    options |= {"gravity": model.gravity}
    if model.nv == 1:
        joint, mass = model.joints[0], model.joints[0].inertia.mass
        k, d = (joint.stiffness or (0.0,))[0], (joint.damping or (0.0,))[0]
        spring = P.Elements(P.stretch, [[0, 1]], [[1.0]], compliance=1.0 / k if k else np.inf, damping=d)
        return P.Particles([[-1.0, 0, 0], [q[0], 0, 0]], [0.0, mass], [spring] if k or d else [], pins=[0], **options)
    q = q.reshape(len(model.joints), 7)
    masses = [joint.inertia.mass for joint in model.joints]
    half = 0.5 * np.array([g.size for g in model.geometries if g.role == "collision"])
    return P.Particles(np.zeros((0, 3)), [], bricks=P.Bricks(q[:, :3], half, masses, q[:, 3:]), **options)


def _turns(q: Any) -> np.ndarray:
    """Rotations (…, 3, 3) of quaternions x, y, z, w."""
    x, y, z, w = np.moveaxis(np.asarray(q, float), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, -1) for row in rows], -2)


def _velocities_of(model: dl.Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    if model.nv == 1:
        return np.array([[0.0, 0, 0], [v[0], 0, 0]])
    R = _turns(q.reshape(-1, 7)[:, 3:])
    linear, angular = (np.einsum("bij,bj->bi", R, x) for x in np.split(v.reshape(-1, 6), 2, -1))
    return np.concatenate([linear, angular])


def _states_of(model: dl.Model, log: P.ParticleTrajectory) -> tuple[np.ndarray, np.ndarray]:
    if model.nv == 1:
        return log.x[:, 1, :1], log.v[:, 1, :1]
    b = len(model.joints)
    R = _turns(log.orientations)
    parts = [np.einsum("tbji,tbj->tbi", R, x) for x in (log.v[:, :b], log.v[:, b:])]
    return np.concatenate([log.x, log.orientations], -1).reshape(-1, 7 * b), np.concatenate(parts, -1).reshape(
        -1, 6 * b
    )
