"""The same physics, described otherwise: results follow, to rounding, or to the bit where nothing rounds otherwise.

Mirror images, orders of joints, links split by fixed joints, names, orders of constraints, positions in a batch, and
units of length, mass and time. No test here knows an answer: what is compared is what two descriptions give.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import delassus as dl
from delassus.compiler.backends.interpreter import evaluate
from delassus.model.model import Model
from delassus.model.parts import WORLD, Frame, Joint, Mimic
from delassus.model.placement import Inertia, Placement
from how_many import examples
from images import Image, mirror, renamed, reordered, split
from joint_cases import random_axis, random_rotation
from scaling import Units, derivative

# --- robots -----------------------------------------------------------------------------------------------------------

KINDS = {
    "revolute": lambda rng: dl.Revolute(an_axis(rng)),
    "continuous": lambda rng: dl.Revolute(an_axis(rng), continuous=True),
    "prismatic": lambda rng: dl.Prismatic(an_axis(rng)),
    "helical": lambda rng: dl.Helical(an_axis(rng), rng.uniform(-0.5, 0.5)),
    "universal": lambda rng: dl.Universal(*map(tuple, random_rotation(rng)[:2].tolist())),
    "cylindrical": lambda rng: dl.Cylindrical(an_axis(rng)),
    "translation": lambda rng: dl.Translation(),
    "planar": lambda rng: dl.Planar(an_axis(rng)),
    "spherical": lambda rng: dl.Spherical(),
    "free": lambda rng: dl.Free(),
}
distances = st.tuples(st.floats(0.4, np.pi), st.integers(-16, 0)).map(lambda x: x[0] * 10.0 ** x[1])
seeds = st.integers(0, 2**32 - 1)


def an_axis(rng):
    """A coordinate axis, or any other."""
    return tuple((np.eye(3)[rng.integers(3)] if rng.integers(2) else random_axis(rng)).tolist())


def a_rotation(rng, distance):
    """Any rotation, or one that is nearly the identity or nearly half a turn about x."""
    w = distance * random_axis(rng)
    near = dl.Placement.from_xyz_rpy(rpy=w).R
    return [random_rotation(rng), near, np.diag([1.0, -1.0, -1.0]) @ near][rng.integers(3)]


def a_body(rng):
    size, mass, axes = rng.uniform(0.1, 0.5, 3), rng.uniform(0.5, 5.0), random_rotation(rng)
    moments = mass / 12 * (np.sum(size**2) - size**2)
    return Inertia.of(mass, rng.uniform(-0.2, 0.2, 3), axes @ np.diag(moments) @ axes.T)


def a_placement(rng, distance):
    return Placement.of(a_rotation(rng, distance), rng.uniform(-0.5, 0.5, 3))


def rotors(rng, kind):
    """Rotor inertias that are the same along all axes, and about all: a mirror changes nothing of them."""
    along, about = rng.uniform(0.1, 1.0, 2)
    return tuple(float(along) if k < 3 else float(about) for motion, _, _ in kind.elements for k in motion.directions)


@dataclass
class State:
    """A robot in a state."""

    model: Model
    q: Any
    v: Any
    a: Any
    tau: Any

    @cached_property
    def M(self):
        return dl.crba.python(self.model, self.q)

    @cached_property
    def acceleration_scale(self):
        """What accelerations (nv,) are sums of, so what their rounding is measured by."""
        a = dl.aba.python(self.model, self.q, self.v, self.tau)
        bias = dl.rnea.python(self.model, self.q, self.v, 0.0 * a)
        return self.per_torque @ (np.abs(self.M) @ np.abs(a) + np.abs(self.tau) + np.max(np.abs(bias)))

    @cached_property
    def per_torque(self):
        return np.abs(np.linalg.inv(self.M))

    def seen_in(self, image: Image) -> "State":
        return State(image.model, image.Q @ self.q, *(image.V @ x for x in (self.v, self.a, self.tau)))


@st.composite
def states(draw, mimicry=True):
    """A tree of one to six joints of any kinds, each on one of the last before it, in a random state."""
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=draw(st.integers(1, 6)), max_size=6))
    distance = draw(distances)
    rng = np.random.default_rng(draw(seeds))
    parents = [int(rng.integers(max(WORLD, k - 3), k)) for k in range(len(kinds))]
    joints: list[Joint] = []
    for k, (name, parent) in enumerate(zip(kinds, parents, strict=True)):
        kind = KINDS[name](rng)
        armature = rotors(rng, kind) if rng.integers(2) else ()
        joint = Joint(f"joint {k}", kind, parent, a_placement(rng, distance), a_body(rng), armature=armature)
        leads = [i for i, other in enumerate(joints) if other.kind.nv == 1 and other.mimic is None]
        if mimicry and kind.nv == 1 and leads and rng.integers(3) == 0:
            mimic = Mimic(int(rng.choice(leads)), *rng.uniform(-2.0, 2.0, 2))
            joint = Joint(joint.name, kind, parent, joint.placement, joint.inertia, mimic=mimic)
        joints.append(joint)
    frames = [Frame(f"frame {k}", k, a_placement(rng, distance)) for k in range(len(joints))]
    model = Model("random", tuple(joints), tuple(frames), tuple(rng.normal(size=3).tolist()))
    return State(model, model.random_configuration(rng), *rng.normal(size=(3, model.nv)))


# --- how results follow: ours, expected, and what rounding is measured by ---------------------------------------------


def check_kinematics(here: State, there: State, image: Image):
    R, p = dl.forward_kinematics.python(here.model, here.q)
    R_1, p_1 = dl.forward_kinematics.python(there.model, there.q)
    order = list(image.bodies)
    yield R_1, image.turned(R[order]), 1.0
    yield p_1, p[order] @ image.P, 1.0 + np.max(np.abs(p))


def check_frames(here: State, there: State, image: Image):
    R, p = dl.frame_placements.python(here.model, here.q)
    R_1, p_1 = dl.frame_placements.python(there.model, there.q)
    yield R_1, image.turned(R), 1.0
    yield p_1, p @ image.P, 1.0 + np.max(np.abs(p))


def check_rnea(here: State, there: State, image: Image):
    tau = dl.rnea.python(here.model, here.q, here.v, here.a)
    yield dl.rnea.python(there.model, there.q, there.v, there.a), image.V @ tau, 1.0 + np.max(np.abs(tau))


def check_crba(here: State, there: State, image: Image):
    yield there.M, image.V @ here.M @ image.V.T, np.max(np.abs(here.M))


def check_aba(here: State, there: State, image: Image):
    a = dl.aba.python(here.model, here.q, here.v, here.tau)
    ours = dl.aba.python(there.model, there.q, there.v, there.tau)
    yield ours, image.V @ a, np.abs(image.V) @ here.acceleration_scale


def check_aba_derivatives(here: State, there: State, image: Image):
    found = dl.aba_derivatives.python(here.model, here.q, here.v, here.tau)
    ours = dl.aba_derivatives.python(there.model, there.q, there.v, there.tau)
    a = dl.aba.python(here.model, here.q, here.v, here.tau)
    of_torque = *dl.rnea_derivatives.python(here.model, here.q, here.v, a)[:2], np.eye(here.model.nv)
    V, off = image.V, here.per_torque @ np.max(np.abs(here.M), 1) * np.max(here.acceleration_scale)
    for one, other, by in zip(ours, found, of_torque, strict=True):
        scale = here.per_torque @ (np.abs(here.M) @ np.abs(other) + np.max(np.abs(by)))
        yield one, V @ other @ V.T, np.abs(V) @ (scale + off[:, None]) @ np.abs(V.T)


def check_energies(here: State, there: State, image: Image):
    kinetic = dl.kinetic_energy.python(here.model, here.q, here.v)
    yield dl.kinetic_energy.python(there.model, there.q, there.v), kinetic, kinetic
    potential = dl.potential_energy.python(here.model, here.q)
    _, p = dl.forward_kinematics.python(here.model, here.q)
    mass = sum(joint.inertia.mass for joint in here.model.joints)
    scale = mass * np.linalg.norm(here.model.gravity) * (1.0 + np.max(np.abs(p)))
    yield dl.potential_energy.python(there.model, there.q), potential, scale


def check_integrate(here: State, there: State, image: Image):
    q = dl.integrate.python(here.model, here.q, here.v)
    yield dl.integrate.python(there.model, there.q, there.v), image.Q @ q, 1.0 + np.max(np.abs(q))


def check_difference(here: State, there: State, image: Image):
    q = dl.integrate.python(here.model, here.q, np.tanh(here.v))
    ours = dl.difference.python(there.model, there.q, image.Q @ q)
    yield ours, image.V @ dl.difference.python(here.model, here.q, q), 1.0


CHECKS = [value for name, value in sorted(globals().items()) if name.startswith("check_")]
every_check = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__[6:])


def verify(check, here: State, image: Image, tolerance=1e-14):
    for found, expected, scale in check(here, here.seen_in(image), image):
        error = np.max(np.abs(found - expected) / np.maximum(scale, 1e-300))
        assert error <= tolerance, f"{error:.1e} of {[joint.kind for joint in here.model.joints]}"


few = settings(max_examples=examples(12), database=None)


# --- robots without constraints ---------------------------------------------------------------------------------------


@every_check
@few
@given(here=states(), seed=seeds)
def test_a_mirror_image_moves_as_the_mirror_shows(check, here, seed):
    verify(check, here, mirror(here.model, random_axis(np.random.default_rng(seed))))


@every_check
@few
@given(here=states(), seed=seeds)
def test_the_order_of_siblings_does_not_matter(check, here, seed):
    verify(check, here, reordered(here.model, np.random.default_rng(seed)))


@every_check
@few
@given(here=states(), seed=seeds, distance=distances, data=st.data())
def test_a_link_that_is_split_by_a_fixed_joint_moves_as_one(check, here, seed, distance, data):
    rng, k = np.random.default_rng(seed), data.draw(st.integers(0, here.model.njoints - 1))
    verify(check, here, split(here.model, k, rng, a_rotation(rng, distance)))


@every_check
@settings(max_examples=4, database=None)
@given(here=states())
def test_names_do_not_matter_to_the_bit(check, here):
    verify(check, here, renamed(here.model), 0.0)


@settings(max_examples=8, database=None)
@given(here=states())
def test_robots_with_other_names_are_the_same_program(here):
    for kernel in (dl.aba, dl.crba, dl.forward_kinematics):
        assert kernel.program(renamed(here.model).model).digest == kernel.program(here.model).digest


@settings(max_examples=8, database=None)
@given(here=states(), seed=seeds, data=st.data())
def test_a_state_in_a_batch_has_the_result_that_it_has_alone_to_the_bit(here, seed, data):
    rng, n = np.random.default_rng(seed), 3
    q = np.stack([here.model.random_configuration(rng) for _ in range(n)])
    v, tau = rng.normal(size=(2, n, here.model.nv))
    at = data.draw(st.integers(0, n - 1))
    q[at], v[at], tau[at] = here.q, here.v, here.tau
    for kernel, inputs in ((dl.aba, (q, v, tau)), (dl.forward_kinematics, (q,))):
        program = kernel.program(here.model)
        for all_of_them, alone in zip(
            evaluate(program, *inputs), evaluate(program, *(x[at] for x in inputs)), strict=True
        ):
            np.testing.assert_array_equal(all_of_them[at], alone)


# --- units ------------------------------------------------------------------------------------------------------------

powers = st.integers(-20, 20).map(lambda k: 2.0**k)
units = st.builds(Units, powers, powers, powers)


def in_units_kinematics(s: State, t: State, u: Units):
    return dl.forward_kinematics, (s.q,), (t.q,), (1.0, u.length)


def in_units_frames(s: State, t: State, u: Units):
    return dl.frame_placements, (s.q,), (t.q,), (1.0, u.length)


def in_units_rnea(s: State, t: State, u: Units):
    return dl.rnea, (s.q, s.v, s.a), (t.q, t.v, t.a), (u.tau(s.model),)


def in_units_aba(s: State, t: State, u: Units):
    return dl.aba, (s.q, s.v, s.tau), (t.q, t.v, t.tau), (u.a(s.model),)


def in_units_crba(s: State, t: State, u: Units):
    return dl.crba, (s.q,), (t.q,), (u.mass_matrix(s.model),)


def in_units_kinetic_energy(s: State, t: State, u: Units):
    return dl.kinetic_energy, (s.q, s.v), (t.q, t.v), (u.energy,)


def in_units_potential_energy(s: State, t: State, u: Units):
    return dl.potential_energy, (s.q,), (t.q,), (u.energy,)


def in_units_aba_derivatives(s: State, t: State, u: Units):
    of, m = u.a(s.model), s.model
    factors = tuple(derivative(of, by) for by in (u.way(m), u.v(m), u.tau(m)))
    return dl.aba_derivatives, (s.q, s.v, s.tau), (t.q, t.v, t.tau), factors


def in_units_rnea_derivatives(s: State, t: State, u: Units):
    of, m = u.tau(s.model), s.model
    factors = tuple(derivative(of, by) for by in (u.way(m), u.v(m), u.a(m)))
    return dl.rnea_derivatives, (s.q, s.v, s.a), (t.q, t.v, t.a), factors


def in_units_integrate(s: State, t: State, u: Units):
    return dl.integrate, (s.q, s.v), (t.q, u.way(s.model) * s.v), (u.q(s.model),)


def in_units_difference(s: State, t: State, u: Units):
    there = dl.integrate.python(s.model, s.q, np.tanh(s.v))
    return dl.difference, (s.q, there), (t.q, u.q(s.model) * there), (u.way(s.model),)


IN_UNITS = [value for name, value in sorted(globals().items()) if name.startswith("in_units_")]


@pytest.mark.parametrize("case", IN_UNITS, ids=lambda case: case.__name__[9:])
@few
@given(here=states(), u=units)
def test_units_of_length_mass_and_time_do_not_matter_to_the_bit(case, here, u):
    m = here.model
    there = State(u.model(m), u.q(m) * here.q, u.v(m) * here.v, u.a(m) * here.a, u.tau(m) * here.tau)
    kernel, inputs, scaled, factors = case(here, there, u)
    one, other = kernel.python(m, *inputs), kernel.python(there.model, *scaled)
    for found, expected, factor in zip(_several(other), _several(one), factors, strict=True):
        np.testing.assert_array_equal(found, factor * expected)


def _several(results):
    return results if isinstance(results, tuple) else (results,)


# --- robots with constraints ------------------------------------------------------------------------------------------


@dataclass
class Held:
    """A mechanism in a state."""

    mechanism: dl.Mechanism
    state: State

    def seen_in(self, image: Image) -> tuple["Held", Any]:
        """Its image, and W that takes its rows."""
        mechanism, W = image.mechanism(self.mechanism)
        return Held(mechanism, self.state.seen_in(image)), W

    def in_order(self, order) -> tuple["Held", Any]:
        """With its constraints in another order."""
        constraints, at = self.mechanism.constraints, list(self.mechanism.row_ranges())
        rows = [row for k in order for row in range(at[k].start, at[k].stop)]
        mechanism = dl.Mechanism(self.state.model, [constraints[k] for k in order])
        return Held(mechanism, self.state), np.eye(self.mechanism.m)[rows]

    @property
    def inputs(self):
        return self.state.q, self.state.v, self.state.tau

    @cached_property
    def J(self):
        return dl.constraint_jacobian.python(self.mechanism, self.state.q)

    @property
    def size_of_J(self):
        """|J|, and 1 m or 1 rad more: what is exactly zero in one description is rounding in another."""
        return np.abs(self.J) + 1.0

    @cached_property
    def G(self):
        return dl.delassus_matrix.python(self.mechanism, self.state.q)

    @property
    def tied(self) -> bool:
        """Whether joints are tied to each other, which caba does not take."""
        return any(isinstance(c, dl.Coupling) for c in self.mechanism.constraints)

    def proximal(self, share: float) -> float:
        """A share of the largest mobility of a row."""
        return share * (float(np.max(np.diagonal(self.G))) or 1.0)

    def scales(self, force, proximal):
        """What accelerations (nv,) and forces (m,) are sums of."""
        s, J = self.state, self.size_of_J
        rows = J @ s.acceleration_scale + 1.0 + s.v @ s.v
        forces = np.abs(force) + np.max(rows) / proximal
        return s.acceleration_scale + s.per_torque @ (J.T @ forces), forces


def a_tie(draw, model: Model, rng, distance) -> Any:
    """A constraint of any kind."""
    pick = list(rng.permutation(model.njoints))
    gains = {"velocity_gain": rng.uniform(0.0, 5.0), "compliance": rng.choice([0.0, rng.uniform(0.0, 1.0)])}
    common = gains | {"acceleration": rng.normal()}
    single = [joint.name for joint in model.joints if joint.kind.nv == 1]
    kind = draw(st.sampled_from(["point", "weld", "hinge", "rod", "lock", "coupling"]))
    if kind == "coupling" and len(single) > 1:
        one, other = rng.permutation(single)[:2].tolist()
        return dl.Coupling(one, other, coefficients=rng.normal(size=3), position_gain=1.0, **common)
    if kind in ("lock", "coupling"):
        return dl.JointLock(model.joints[pick[0]].name, **common)
    frame, other = f"frame {pick[0]}", f"frame {pick[1]}" if len(pick) > 1 else None
    common["placement"] = a_placement(rng, distance)
    if other is not None:
        common |= {"position_gain": 2.0, "placement2": a_placement(rng, distance)}
    if kind == "hinge" and other is not None:
        return dl.Hinge(frame, other, axis=str(rng.choice(list("xyz"))), **common)
    if kind == "rod":
        where = {} if other is not None else {"placement2": a_placement(rng, distance)}
        return dl.Distance(frame, other, length=rng.uniform(0.1, 1.0), **common | {"position_gain": 2.0} | where)
    make, most = (dl.Point, 3) if kind == "point" else (dl.Weld, 6)
    rows = draw(st.lists(st.integers(0, most - 1), min_size=1, max_size=most, unique=True))
    if other is not None and rng.integers(2):
        return make(frame, other, rows=rows, **common)
    there = {"position": rng.normal(size=3)} if kind == "point" else {"target": a_placement(rng, distance)}
    common.pop("placement2", None)
    return make(frame, rows=rows, **common | there | {"position_gain": 2.0})


@st.composite
def held(draw):
    """A tree of any joints with one to three constraints of any kinds, often redundant, in a state."""
    state = draw(states(mimicry=False))
    rng, distance = np.random.default_rng(draw(seeds)), draw(distances)
    ties = [a_tie(draw, state.model, rng, distance) for _ in range(draw(st.integers(1, 3)))]
    return Held(dl.Mechanism(state.model, ties), state)


def rows_delassus(here: Held, there: Held, V, W):
    """J M⁻¹ Jᵀ."""
    per_torque, J = here.state.per_torque, here.size_of_J
    scale = J @ per_torque @ np.abs(here.state.M) @ per_torque @ J.T
    yield there.G, W @ here.G @ W.T, np.abs(W) @ scale @ np.abs(W.T)


def rows_prox_pv(here: Held, there: Held, V, W):
    yield from _iterates(dl.prox_pv, here, there, V, W)


def rows_caba(here: Held, there: Held, V, W):
    if not here.tied:
        yield from _iterates(dl.caba, here, there, V, W)


def _iterates(method, here: Held, there: Held, V, W):
    """Three iterations, whose ε makes up for rows that depend on each other."""
    proximal = here.proximal(0.1)
    a, force = method.python(here.mechanism, *here.inputs, proximal=proximal)
    ours, forces = method.python(there.mechanism, *there.inputs, proximal=proximal)
    scale, force_scale = here.scales(force, proximal)
    yield ours, V @ a, np.abs(V) @ scale
    yield forces, W @ force, np.abs(W) @ force_scale


def rows_to_tolerance(here: Held, there: Held, V, W):
    """Constrained dynamics to a tolerance, where it is beyond doubt which rows depend on each other."""
    share = np.linalg.eigvalsh(here.G) / here.proximal(1.0)
    if not np.all((share < 1e-12) | (share > 1e-4)):
        return
    options = {"method": "prox_pv", "proximal": here.proximal(1e-6)}
    a, force, _, _, status, _ = dl.constrained_dynamics.python(here.mechanism, *here.inputs, **options)
    ours, forces, _, _, ended, _ = dl.constrained_dynamics.python(there.mechanism, *there.inputs, **options)
    assert ended == status
    if status == dl.Status.ITERATIONS:  # it has not found an answer, and says so
        return
    for found, expected in ((ours, V @ a), (forces, W @ force)):
        yield found, expected, 1e6 * max(1.0, np.max(np.abs(expected)))  # the tolerance is 1e-10, not rounding


ROWS = [value for name, value in sorted(globals().items()) if name.startswith("rows_")]
every_row = pytest.mark.parametrize("check", ROWS, ids=lambda check: check.__name__[5:])


def verify_rows(check, here: Held, there: Held, V, W, tolerance=1e-14):
    for found, expected, scale in check(here, there, V, W):
        error = np.max(np.abs(found - expected) / np.maximum(scale, 1e-300))
        assert error <= tolerance, f"{error:.1e} of {here.mechanism.constraints}"


@every_row
@few
@given(here=held(), axis=st.integers(0, 2))
def test_a_mirror_image_of_a_mechanism_moves_as_the_mirror_shows(check, here, axis):
    image = mirror(here.state.model, np.eye(3)[axis])
    there, W = here.seen_in(image)
    verify_rows(check, here, there, image.V, W)


@every_row
@few
@given(here=held(), seed=seeds)
def test_the_order_of_siblings_does_not_matter_to_constraints(check, here, seed):
    image = reordered(here.state.model, np.random.default_rng(seed))
    there, W = here.seen_in(image)
    verify_rows(check, here, there, image.V, W)


@every_row
@few
@given(here=held(), seed=seeds, distance=distances, data=st.data())
def test_a_link_that_is_split_by_a_fixed_joint_is_held_as_one(check, here, seed, distance, data):
    rng, k = np.random.default_rng(seed), data.draw(st.integers(0, here.state.model.njoints - 1))
    image = split(here.state.model, k, rng, a_rotation(rng, distance))
    there, W = here.seen_in(image)
    verify_rows(check, here, there, image.V, W)


@every_row
@few
@given(here=held(), data=st.data())
def test_the_order_of_constraints_does_not_matter(check, here, data):
    order = data.draw(st.permutations(range(len(here.mechanism.constraints))))
    there, W = here.in_order(order)
    verify_rows(check, here, there, np.eye(here.state.model.nv), W)


@every_row
@settings(max_examples=4, database=None)
@given(here=held())
def test_names_do_not_matter_to_constraints_to_the_bit(check, here):
    image = renamed(here.state.model)
    there, W = here.seen_in(image)
    verify_rows(check, here, there, image.V, W, 0.0)


@pytest.mark.parametrize("solve", [dl.caba, dl.prox_pv, dl.constrained_dynamics], ids=["caba", "prox_pv", "tolerance"])
def test_a_held_state_in_a_batch_has_the_result_that_it_has_alone_to_the_bit(solve):
    """In compiled code, whose lanes iterate as often as each of them needs."""
    mechanism = dl.Mechanism(dl.load("four_bar"))
    rng = np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, 21, mechanism.nv))

    def results(*inputs):
        found = solve(mechanism, *inputs)
        return (
            found if isinstance(found, tuple) else (found.acceleration, found.force, found.residual, found.iterations)
        )

    order = rng.permutation(len(q))
    batch, shuffled = results(q, v, tau), results(q[order], v[order], tau[order])
    for k, x in enumerate(batch):
        np.testing.assert_array_equal(shuffled[k], x[order])
    for i in (0, 7, 8, 20):
        for alone, x in zip(results(q[i], v[i], tau[i]), batch, strict=True):
            np.testing.assert_array_equal(alone, x[i])
