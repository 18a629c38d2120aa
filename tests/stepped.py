"""Small mechanisms for the tests of steps of time: sliders on springs, masses on rods, a governor, balls."""

from dataclasses import replace

import numpy as np
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import delassus as dl
from delassus.model.bundled.build import Assembly, Prismatic, Revolute, ball, box, rod
from delassus.model.joints import Translation

G = 9.81


def slider(mass=1.0, stiffness=0.0, damping=0.0) -> dl.Model:
    """A mass on a rail, without gravity, with a spring and a damper in its joint."""
    a = Assembly("slider")
    a.body("mass", Prismatic((1, 0, 0)), None, (0, 0, 0), [ball(0.1, mass)])
    model = a.model()
    joint = replace(model.joints[0], stiffness=(stiffness,), damping=(damping,))
    return replace(model, joints=(joint,), gravity=(0.0, 0.0, 0.0))


def sprung(mass=1.0) -> dl.Mechanism:
    """The same mass, held at zero by a row."""
    return dl.Mechanism(slider(mass), [dl.JointLock("mass_joint", position=0.0, name="spring")])


def masses(count: int, gravity=(0.0, 0.0, -G)) -> dl.Model:
    """Point masses of 1, 2, … kg that move freely."""
    a = Assembly("masses")
    for k in range(count):
        a.body(f"mass{k}", Translation(), None, (0, 0, 0), [ball(0.05, 1.0 + k)])
    return replace(a.model(), gravity=gravity)


def on_rod() -> dl.Mechanism:
    """A mass of 1 kg on a rod of 1 m, that is held 1 m above the origin: a pendulum that hangs at q = 0."""
    above = dl.Placement.of(p=(0.0, 0.0, 1.0))
    return dl.Mechanism(masses(1), [dl.Distance("mass0", placement2=above, length=1.0, name="rod")])


def length(q):
    """That of the rod."""
    return np.linalg.norm(np.asarray(q) - [0.0, 0.0, 1.0], axis=-1)


def governor() -> tuple[dl.Mechanism, np.ndarray, np.ndarray]:
    """A shaft with two arms that carry balls of 5 kg, and a slider on two couplers; q and v as it begins to turn."""
    a = Assembly("governor")
    a.body("axis", Revolute((0, 0, 1)), None, (0, 0, 0), [rod((0, 0, -1), (0, 0, 0), 0.3, radius=0.05)])
    for side, x in (("left", -1.0), ("right", 1.0)):
        parts = [rod((0, 0, 0), (x, 0, 0), 0.3), ball(0.05, 5.0, (x, 0, 0))]
        a.body(side, Revolute((0, 1, 0)), "axis", (0, 0, 0), parts)
        a.frame(f"{side}_pin", side, dl.Placement.of(p=(0.5 * x, 0, 0)))
    a.body("slider", Prismatic((0, 0, 1)), "axis", (0, 0, 0), [box((0.1, 0.1, 0.1), 3.0)])
    model = a.model()
    couplers = [dl.Distance(f"{side}_pin", "slider", length=0.5, name=side) for side in ("left", "right")]
    q = model.configuration(left_joint=-np.pi / 3, right_joint=np.pi / 3, slider_joint=-np.cos(np.pi / 6))
    return dl.Mechanism(model, couplers), q, np.array([2 * np.pi, 0.0, 0.0, 0.0])


def balls_in_a_row(count: int) -> tuple[dl.Model, list[dl.Contact]]:
    """Equal balls of radius ½ m on a rail; each has its own slide, so that their coordinates are the ball's places."""
    a = Assembly("cradle")
    for k in range(count):
        a.body(f"ball{k}", Prismatic((1, 0, 0)), None, (0, 0, 0), [ball(0.5, 1.0)])
        turned = dl.Placement.from_xyz_rpy((0.5, 0, 0), (0, np.pi / 2, 0))  # z along x: the face to the right
        a.frame(f"face{k}", f"ball{k}", turned)
    model = replace(a.model(), gravity=(0.0, 0.0, 0.0))
    row = [dl.Contact(f"ball{k + 1}", f"face{k}", corners=[(-0.5, 0, 0)], friction=0.0) for k in range(count - 1)]
    return model, row


def run(mechanism, q, v, steps: int, **options):
    """Configurations and velocities (steps + 1, …) of so many steps."""
    q, v = np.asarray(q, float), np.asarray(v, float)
    tau = np.zeros(v.shape)
    states = [(q, v)]
    for _ in range(steps):
        step = dl.stepping.compliant_step(mechanism, *states[-1], tau, **options)
        states.append((step.q, step.v))
    return tuple(np.stack(x) for x in zip(*states, strict=True))


def kept_straight(v, a, h, at=0, inertia=None):
    """Velocities of a free joint, v[at : at + 6], after a step with v̇ = a in turning axes: v + h (a + ω × v) in the
    axes of the beginning, and in those of the end.

    With the inertia (3, 3) of a free body whose centre is its origin, gyroscopic forces are in its flight, not in v̇.
    """
    straight = v + h * a
    lin, ang = slice(at, at + 3), slice(at + 3, at + 6)
    straight[..., lin] += h * np.cross(v[..., ang], v[..., lin])
    if inertia is not None:
        turning = np.cross(v[..., ang], v[..., ang] @ inertia)
        straight[..., ang] += h * np.linalg.solve(inertia, turning[..., None])[..., 0]
    return straight, at_the_end(straight, h, at, inertia)


def at_the_end(straight, h, at=0, inertia=None):
    """Velocities in the axes that a free joint has after a step, from those in the axes of its beginning."""
    end, lin, ang = np.array(straight), slice(at, at + 3), slice(at + 3, at + 6)
    turns, spins = Rotation.from_rotvec(h * straight[..., ang].reshape(-1, 3)), straight[..., ang].reshape(-1, 3)
    if inertia is not None:
        turns, spins = _flown(spins, inertia, h)
        end[..., ang] = spins.reshape(end[..., ang].shape)
    end[..., lin] = turns.apply(straight[..., lin].reshape(-1, 3), inverse=True).reshape(end[..., lin].shape)
    return end


def _flown(spins, inertia, h):
    """Turns and angular velocities (n, 3) after Euler's equations of a free body, for h [s]."""

    def rate(_, y):
        w, x = y[:3], y[3:]
        size = np.linalg.norm(x)
        series = (1 / 12 + size**2 / 720) if size < 0.5 else (1 / size**2 - 0.5 / (size * np.tan(0.5 * size)))
        turning = w + 0.5 * np.cross(x, w) + series * np.cross(x, np.cross(x, w))
        return np.concatenate([np.linalg.solve(inertia, -np.cross(w, inertia @ w)), turning])

    ends = [solve_ivp(rate, (0, h), [*w, 0, 0, 0], method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1] for w in spins]
    ends = np.array(ends)
    return Rotation.from_rotvec(ends[:, 3:]), ends[:, :3]
