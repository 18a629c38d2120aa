"""Models whose joints mimic others, against a dense projection of Pinocchio's model with all joints independent.

The full configuration is q_full = G q + offset and the full velocity v_full = G v; so M = Gᵀ M_full G, torques are
Gᵀ tau_full, and Jacobians J_full G.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import delassus as dl
from delassus.model.generators import random_tree
from delassus.model.joints import Helical, Prismatic, Revolute
from delassus.model.model import Model
from delassus.model.parts import Mimic
from differences import jacobian
from how_many import examples
from joint_checks import check_kinematics  # noqa: F401 - one of CHECKS
from robots import file, pinocchio_model

ROBOTS = [
    ("talos_full_v2.urdf", "fixed"),
    ("talos_full_v2.urdf", "free"),
    ("romeo.urdf", "fixed"),
    ("panda.urdf", "fixed"),
    ("baxter.urdf", "fixed"),
    ("pr2.urdf", "fixed"),
    ("tiago_pro.urdf", "fixed"),
]
REFERENCES = {"LOCAL": pin.LOCAL, "WORLD": pin.WORLD, "LOCAL_WORLD_ALIGNED": pin.LOCAL_WORLD_ALIGNED}


# --- the dense projection ---------------------------------------------------------------------------------------------


@dataclass
class Case:
    """A reduced model in a random state, and Pinocchio's full one."""

    model: Model
    theirs: Any
    frame: str
    seed: int = 0

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        self.data = self.theirs.createData()
        self.full = replace(self.model, joints=tuple(replace(joint, mimic=None) for joint in self.model.joints))
        self.q = self.model.random_configuration(rng)
        self.v, self.a = rng.normal(size=(2, self.model.nv))

    def expanded(self, q):
        """The configuration of the full model, in Pinocchio's layout."""
        parts = []
        for joint, start in zip(self.model.joints, self.model.q_starts, strict=True):
            own = q[start : start + joint.kind.nq]
            parts.append(joint.mimic.ratio * own + joint.mimic.offset if joint.mimic else own)
        return dl.q_to_pinocchio(self.full, np.concatenate(parts))

    @property
    def pq(self):
        return self.expanded(self.q)

    @property
    def G(self):
        """The matrix that takes reduced velocities to full ones."""
        G = np.zeros((self.full.nv, self.model.nv))
        for joint, row, column in zip(self.model.joints, self.full.v_starts, self.model.v_starts, strict=True):
            for k in range(joint.kind.nv):
                G[row + k, column + k] = joint.mimic.ratio if joint.mimic else 1.0
        return G

    @property
    def M(self):
        """Gᵀ M_full G by columns of Pinocchio's inverse dynamics, which need no contiguous subtrees."""
        m = self.theirs.copy()
        m.gravity = pin.Motion.Zero()
        d, still = m.createData(), np.zeros(m.nv)
        return self.G.T @ np.stack([pin.rnea(m, d, self.pq, still, column) for column in self.G.T], axis=1)

    def torques(self, *forces):
        return self.G.T @ pin.rnea(self.theirs, self.data, self.pq, self.G @ self.v, self.G @ self.a, *forces)


def check_mass_matrix(c: Case, run):
    yield "M", run(dl.crba, c.q), c.M, 0


def check_torques(c: Case, run):
    yield "rnea", run(dl.rnea, c.q, c.v, c.a), c.torques(), 1
    there = c.G.T @ pin.nonLinearEffects(c.theirs, c.data, c.pq, c.G @ c.v)
    yield "bias", run(dl.bias_torques, c.q, c.v), there, 1
    there = c.G.T @ pin.computeGeneralizedGravity(c.theirs, c.data, c.pq)
    yield "gravity", run(dl.gravity_torques, c.q), there, 1


def check_forces(c: Case, run):
    forces = np.random.default_rng(1).normal(size=(c.theirs.njoints, 6))
    wrenches = pin.StdVec_Force()
    for f in forces:
        wrenches.append(pin.Force(f))
    yield "rnea with forces", run(dl.rnea, c.q, c.v, c.a, forces=forces[1:]), c.torques(wrenches), 1


def check_accelerations(c: Case, run):
    tau = np.random.default_rng(2).normal(size=c.model.nv)
    bias = c.G.T @ pin.nonLinearEffects(c.theirs, c.data, c.pq, c.G @ c.v)
    yield "aba", run(dl.aba, c.q, c.v, tau), np.linalg.solve(c.M, tau - bias), "solved"


def check_derivatives(c: Case, run):
    m, d, G, n = c.theirs, c.data, c.G, c.model.nv
    by_q = jacobian(lambda x: G.T @ pin.rnea(m, d, pin.integrate(m, c.pq, G @ x), G @ c.v, G @ c.a), n)
    by_v = jacobian(lambda x: G.T @ pin.rnea(m, d, c.pq, G @ (c.v + x), G @ c.a), n)
    largest = 1 + np.max(np.abs(c.torques()))
    for ours, theirs in zip(run(dl.rnea_derivatives, c.q, c.v, c.a), (by_q, by_v, c.M), strict=True):
        yield "torques", ours, theirs, largest
    accelerations = run(dl.aba_derivatives, c.q, c.v, c.torques())
    for ours, theirs in zip(accelerations, (-by_q, -by_v, np.eye(n)), strict=True):
        yield "accelerations", c.M @ ours, theirs, largest + np.max(np.abs(c.M)) * np.max(np.abs(ours))


def check_regressor(c: Case, run):
    there = pin.computeJointTorqueRegressor(c.theirs, c.data, c.pq, c.G @ c.v, c.G @ c.a)
    yield "regressor", run(dl.torque_regressor, c.q, c.v, c.a), c.G.T @ np.reshape(there, (c.full.nv, -1)), 1


def check_factors(c: Case, run):
    U, D = run(dl.udu, c.q)
    yield "U D Uᵀ", U * D @ U.T, c.M, 0
    yield "below the diagonal of U", np.tril(U), np.eye(c.model.nv), 0
    yield "D", D > 0.0, np.ones(c.model.nv), 0


def check_inverse(c: Case, run):
    yield "inverse", run(dl.inverse_mass_matrix, c.q), np.linalg.inv(c.M), "solved"
    yield "solve", run(dl.udu_solve, c.q, c.a), np.linalg.solve(c.M, c.a), "solved"


def check_frames(c: Case, run):
    m, d, k = c.theirs, c.data, c.theirs.getFrameId(c.frame)
    pin.computeJointJacobians(m, d, c.pq)
    pin.forwardKinematics(m, d, c.pq, c.G @ c.v, c.G @ c.a)
    pin.updateFramePlacements(m, d)
    for reference, r in REFERENCES.items():
        options = {"frame": c.frame, "reference": reference}
        there = np.reshape(pin.getFrameJacobian(m, d, k, r), (6, -1)) @ c.G
        yield "jacobian", run(dl.frame_jacobian, c.q, **options), there, 1
        yield "velocity", run(dl.frame_velocity, c.q, c.v, **options), pin.getFrameVelocity(m, d, k, r).vector, 1
        there = pin.getFrameAcceleration(m, d, k, r).vector
        yield "acceleration", run(dl.frame_acceleration, c.q, c.v, c.a, **options), there, 1


def check_centroid(c: Case, run):
    m, d = c.theirs, c.data
    yield "center", run(dl.center_of_mass, c.q), pin.centerOfMass(m, d, c.pq), 1
    there = np.reshape(pin.jacobianCenterOfMass(m, d, c.pq), (3, -1)) @ c.G
    yield "its jacobian", run(dl.center_of_mass_jacobian, c.q), there, 1
    there = pin.computeCentroidalMomentum(m, d, c.pq, c.G @ c.v).vector
    yield "momentum", run(dl.centroidal_momentum, c.q, c.v), there, 1


def check_energies(c: Case, run):
    yield "kinetic", run(dl.kinetic_energy, c.q, c.v), 0.5 * c.v @ c.M @ c.v, 1
    yield "potential", run(dl.potential_energy, c.q), pin.computePotentialEnergy(c.theirs, c.data, c.pq), 100


def check_integrate(c: Case, run):
    moved = c.expanded(run(dl.integrate, c.q, c.v))
    there = pin.integrate(c.theirs, c.pq, c.G @ c.v)
    yield "way left", pin.difference(c.theirs, moved, there), np.zeros(c.full.nv), 1


def check_difference(c: Case, run):
    yield "way", run(dl.difference, c.q, run(dl.integrate, c.q, 0.5 * c.v)), 0.5 * c.v, 1


CHECKS = [value for name, value in sorted(globals().items()) if name.startswith("check_")]
NAMES = [check.__name__.removeprefix("check_") for check in CHECKS]


def verify(c: Case, check, run) -> None:
    """Relative errors up to 1e-10; what is solved for may lose digits where M is ill conditioned."""
    for what, ours, theirs, scale in check(c, run):
        assert np.shape(ours) == np.shape(theirs)
        bound, least = 1e-10, 0.0
        if scale == "solved":
            bound = max(bound, 1e3 * np.finfo(float).eps * np.linalg.cond(c.M))
        else:
            least = scale
        error = np.max(np.abs(ours - theirs)) / max(np.max(np.abs(theirs)), least)
        assert error <= bound, f"{what}: {error:.1e} > {bound:.1e}"


def plainly(model):
    return lambda kernel, *arrays, **options: kernel.python(model, *arrays, **options)


# --- robots -----------------------------------------------------------------------------------------------------------


@cache
def robot(name, root) -> Case:
    model = dl.load(file(name), root=root)
    theirs = pinocchio_model(file(name), root)
    if name == "romeo.urdf":  # whose fingers have no mass
        model = replace(model, joints=tuple(replace(joint, armature=(0.01,)) for joint in model.joints))
        theirs.armature = np.full(theirs.nv, 0.01)
    last = next(i for i, joint in reversed(list(enumerate(model.joints))) if joint.mimic)
    names = [frame.name for frame in theirs.frames]
    return Case(model, theirs, next(f.name for f in model.frame_list if f.joint == last and names.count(f.name) == 1))


@pytest.mark.parametrize("check", CHECKS, ids=NAMES)
@pytest.mark.parametrize(("name", "root"), ROBOTS, ids=[f"{name}-{root}" for name, root in ROBOTS])
def test_a_robot_with_mimics_agrees_with_its_projection(name, root, check):
    c = robot(name, root)
    verify(c, check, plainly(c.model))


@pytest.mark.parametrize("check", CHECKS, ids=NAMES)
@pytest.mark.parametrize("name", ["panda.urdf", "baxter.urdf"])
def test_a_compiled_robot_with_mimics_agrees_with_its_projection(name, check):
    c = robot(name, "fixed")
    verify(c, check, lambda kernel, *arrays, **options: kernel(c.model, *arrays, **options))


def test_compiled_forward_dynamics_of_a_humanoid_with_mimics_agree_with_its_projection():
    c = robot("talos_full_v2.urdf", "free")
    verify(c, check_accelerations, lambda kernel, *arrays, **options: kernel(c.model, *arrays, **options))


def test_ignoring_mimics_gives_every_joint_coordinates_of_its_own():
    assert dl.load(file("romeo.urdf"), mimic="ignore").nv == pinocchio_model(file("romeo.urdf"), "fixed").nv


# --- mechanisms made by hand ------------------------------------------------------------------------------------------


def pinocchio_tree(model: Model):
    """Pinocchio's model of a tree of single axes, all of them independent."""
    theirs = pin.Model()
    for joint in model.joints:
        axis = np.array(joint.kind.axis)
        if isinstance(joint.kind, Helical):
            kind = pin.JointModelHelicalUnaligned(axis, joint.kind.pitch)
        elif isinstance(joint.kind, Prismatic):
            kind = pin.JointModelPrismaticUnaligned(axis)
        else:
            kind = pin.JointModelRevoluteUnaligned(axis)
        place = pin.SE3(joint.placement.R, joint.placement.p)
        i = theirs.addJoint(joint.parent + 1, kind, place, joint.name)
        Y = joint.inertia
        inertia = pin.Inertia(Y.mass, np.array(Y.com), np.array(Y.rotational))
        theirs.appendBodyToJoint(i, inertia, pin.SE3.Identity())
        theirs.addFrame(pin.Frame(f"link{i - 1}", i, 0, pin.SE3.Identity(), pin.FrameType.OP_FRAME))
    theirs.armature = np.array([rotor for joint in model.joints for rotor in joint.armature])
    return theirs


def mechanism(parents, mimics, seed=0) -> Case:
    """Joints about, along and around random axes, some of which mimic others: {follower: (source, ratio, offset)}."""
    rng = np.random.default_rng(seed)
    joints = []
    for k, joint in enumerate(random_tree(len(parents), seed).joints):
        axis = tuple(rng.normal(size=3).tolist())
        kind = [Revolute(axis), Prismatic(axis), Helical(axis, 0.3)][int(rng.integers(3))]
        mimic = Mimic(*mimics[k]) if k in mimics else None
        rotor = (float(rng.uniform(0.1, 1.0)),)
        joints.append(replace(joint, kind=kind, parent=parents[k], mimic=mimic, armature=rotor))
    model = replace(random_tree(len(parents), seed), joints=tuple(joints))
    return Case(model, pinocchio_tree(model), f"link{len(parents) - 1}", seed)


SMALL: dict[str, Case] = {
    "its parent": mechanism([-1, 0, 1], {1: (0, 0.7, 0.2)}),
    "its child": mechanism([-1, 0, 1], {0: (1, -0.7, 0.2)}),
    "a joint of another branch": mechanism([-1, 0, 1, 0, 3, -1], {4: (2, 1.3, -0.4)}),
    "a joint of another branch that comes later": mechanism([-1, 0, 1, 0, 3, -1], {2: (4, 1.3, -0.4)}),
    "the last joint, as all others do": mechanism([-1, 0, 0, 2], {k: (3, 0.5 + k, 0.1 * k) for k in range(3)}),
    "the first joint, as all others do": mechanism([-1, 0, 0, 2], {k: (0, 0.5 + k, 0.1 * k) for k in (1, 2, 3)}),
    "a joint without moving": mechanism([-1, 0, 1], {2: (0, 0.0, 0.4)}),
    "joints across one another": mechanism([-1, 0, 1, 0, 3], {1: (4, 2.0, 0.0), 3: (2, -1.0, 0.5)}),
}


@pytest.mark.parametrize("check", CHECKS, ids=NAMES)
@pytest.mark.parametrize("name", SMALL)
def test_a_joint_may_mimic(name, check):
    c = SMALL[name]
    verify(c, check, plainly(c.model))


@st.composite
def mechanisms(draw):
    n = draw(st.integers(2, 8))
    parents = [draw(st.integers(-1, k - 1)) for k in range(n)]
    followers = draw(st.sets(st.integers(0, n - 1), max_size=n - 1))
    sources = sorted(set(range(n)) - followers)
    number = st.floats(-2.0, 2.0)
    mimics = {k: (draw(st.sampled_from(sources)), draw(number), draw(number)) for k in sorted(followers)}
    return mechanism(parents, mimics, draw(st.integers(0, 1000)))


@pytest.mark.parametrize("check", CHECKS, ids=NAMES)
@settings(max_examples=examples(12), deadline=None)
@given(c=mechanisms())
def test_any_mechanism_with_mimics_agrees_with_its_projection(check, c):
    verify(c, check, plainly(c.model))
