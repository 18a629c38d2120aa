"""Every robot in the MJCF files of dm_control and gymnasium, against MuJoCo: kinematics, dynamics, energies.

A relative error in the infinity norm of at most 1e-10 is allowed, for what solves with the mass matrix
max(1e-10, 1e3·eps·cond M). Constraints, contacts, actuators and fluids are switched off in MuJoCo.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import delassus as dl
from delassus.model.readers.documents.xml import ModelFileError

mujoco = pytest.importorskip("mujoco")
from mjcf_files import FILES, NO_MJCF, REFUSED, ROBOTS, WITHOUT_JOINTS, compiled  # noqa: E402

if not FILES:
    pytest.skip("neither dm_control nor gymnasium is installed", allow_module_level=True)

COMPILED = [
    "dm_control/mujoco/testing/assets/model_with_ball_joints.xml",
    "dm_control/suite/manipulator.xml",
    "dm_control/suite/quadruped.xml",
    "gymnasium/envs/mujoco/assets/ant.xml",
    "gymnasium/envs/mujoco/assets/humanoid.xml",
]
every_robot = pytest.mark.parametrize("name", ROBOTS)


@dataclass
class Case:
    """A robot in a random state, here and in MuJoCo (`m`, `d`); `a` is an acceleration, `tau` are forces."""

    model: dl.Model
    m: Any
    d: Any
    q: Any
    v: Any
    a: Any
    tau: Any

    def turned(self, rows):
        """Generalized forces, or rows of a Jacobian, that MuJoCo gives."""
        return dl.v_from_mujoco(self.model, self.q, rows)


@cache
def case(name: str) -> Case:
    m = compiled(name)
    model = dl.load(FILES[name])
    rng = np.random.default_rng(0)
    q = model.random_configuration(rng)
    v, a, tau = rng.normal(size=(3, model.nv))
    d = mujoco.MjData(m)
    d.qpos[:] = dl.q_to_mujoco(model, q)
    d.qvel[:] = dl.v_to_mujoco(model, q, v)
    d.qfrc_applied[:] = dl.v_to_mujoco(model, q, tau)
    mujoco.mj_forward(m, d)
    return Case(model, m, d, q, v, a, tau)


def mass_matrix(c: Case):
    M = np.zeros((c.m.nv, c.m.nv))
    for k, column in enumerate(np.eye(c.m.nv)):
        mujoco.mj_mulM(c.m, c.d, M[k], column)
    return c.turned(c.turned(M).T)


Run = Callable[..., Any]


def check_mass_matrix(c: Case, run: Run):
    yield "crba", run(dl.crba, c.q), mass_matrix(c)


def check_forces(c: Case, run: Run):
    """MuJoCo's bias has the time derivative of world-aligned velocities: ours is it at the acceleration -ω × u."""
    still = dl.a_from_mujoco(c.model, c.q, c.v, np.zeros(c.m.nv))
    yield "bias", run(dl.rnea, c.q, c.v, still), c.turned(c.d.qfrc_bias)
    yield "passive", run(dl.passive_forces, c.q, c.v), c.turned(c.d.qfrc_passive)


def check_inverse_dynamics(c: Case, run: Run):
    d = mujoco.MjData(c.m)
    d.qpos[:], d.qvel[:] = c.d.qpos, c.d.qvel
    d.qacc[:] = dl.a_to_mujoco(c.model, c.q, c.v, c.a)
    mujoco.mj_inverse(c.m, d)
    ours = run(dl.rnea, c.q, c.v, c.a) - run(dl.passive_forces, c.q, c.v)
    yield "inverse dynamics", ours, c.turned(d.qfrc_inverse)


def check_forward_dynamics(c: Case, run: Run):
    forces = c.tau + run(dl.passive_forces, c.q, c.v)
    yield "aba", run(dl.aba, c.q, c.v, forces), dl.a_from_mujoco(c.model, c.q, c.v, c.d.qacc)


def check_frames(c: Case, run: Run):
    """The last three bodies and the last site: the deepest ones of most robots."""
    bodies = [(b, mujoco.mj_jacBody, c.d.xpos[b], c.d.xmat[b], c.model.frame_list[b]) for b in range(c.m.nbody)[-3:]]
    first = c.m.nbody + c.m.njnt
    sites = [
        (s, mujoco.mj_jacSite, c.d.site_xpos[s], c.d.site_xmat[s], c.model.frame_list[first + s])
        for s in range(c.m.nsite)[-1:]
    ]
    for index, jacobian, position, rotation, frame in (*bodies, *sites):
        R, p = run(dl.frame_placement, c.q, frame=frame.name)
        yield f"rotation of {frame.name}", R, rotation.reshape(3, 3)
        yield f"position of {frame.name}", p, position
        J = np.zeros((6, c.m.nv))
        jacobian(c.m, c.d, J[:3], J[3:], index)
        ours = run(dl.frame_jacobian, c.q, frame=frame.name, reference="LOCAL_WORLD_ALIGNED")
        yield f"Jacobian of {frame.name}", ours, c.turned(J)


def check_energies(c: Case, run: Run):
    mujoco.mj_energyPos(c.m, c.d)
    mujoco.mj_energyVel(c.m, c.d)
    base = c.model.base_inertia
    fixed = -base.mass * np.dot(c.model.gravity, base.com)
    potential = run(dl.potential_energy, c.q) + fixed + run(dl.spring_energy, c.q)
    yield "kinetic", run(dl.kinetic_energy, c.q, c.v), c.d.energy[1]
    yield "potential", potential, c.d.energy[0]


GROUPS = [
    check_mass_matrix,
    check_forces,
    check_inverse_dynamics,
    check_forward_dynamics,
    check_frames,
    check_energies,
]


def verify(c: Case, group: Callable, run: Run) -> None:
    bound = 1e-10
    if group is check_forward_dynamics:
        bound = max(bound, 1e3 * np.finfo(float).eps * np.linalg.cond(mass_matrix(c)))
    for what, ours, theirs in group(c, run):
        error = np.max(np.abs(np.asarray(ours) - theirs)) / max(np.max(np.abs(theirs)), 1e-300)
        assert error <= bound, f"{what}: {error:.1e} > {bound:.1e}"


def test_there_are_enough_robots():
    assert len(ROBOTS) >= 25


def test_all_joint_types_are_among_them():
    assert {int(kind) for name in COMPILED for kind in compiled(name).jnt_type} == {0, 1, 2, 3}


@pytest.mark.parametrize("group", GROUPS, ids=lambda g: g.__name__.removeprefix("check_"))
@every_robot
def test_plain_numpy_agrees_with_mujoco(name, group):
    c = case(name)
    verify(c, group, lambda kernel, *arrays, **options: kernel.python(c.model, *arrays, **options))


@pytest.mark.parametrize("group", GROUPS, ids=lambda g: g.__name__.removeprefix("check_"))
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_code_agrees_with_mujoco(name, group):
    c = case(name)
    verify(c, group, lambda kernel, *arrays, **options: kernel(c.model, *arrays, **options))


@every_robot
def test_joints_have_mujocos_names_and_layout(name):
    m, model = compiled(name), case(name).model
    assert [m.joint(j).name or joint.name for j, joint in enumerate(model.joints)] == [j.name for j in model.joints]
    assert (list(model.q_starts), list(model.v_starts)) == (m.jnt_qposadr.tolist(), m.jnt_dofadr.tolist())


@every_robot
def test_bodies_and_sites_are_frames(name):
    m, model = compiled(name), case(name).model
    names = {frame.name for frame in model.frame_list}
    assert {m.body(b).name for b in range(m.nbody)} - {""} <= names
    assert len(model.frame_list) >= m.nbody + m.njnt + m.nsite


def pose(position, quaternion):
    R = np.zeros(9)
    mujoco.mju_quat2Mat(R, quaternion)
    return dl.Placement.of(R.reshape(3, 3), position)


@every_robot
def test_shapes_are_where_mujoco_has_them(name):
    """MuJoCo moves a mesh to its center. Its `geom_xpos` may be that of a body's inertia, near and not equal."""
    c = case(name)
    rotations, positions = dl.forward_kinematics.python(c.model, c.q)
    solid, fields = c.m.geom_contype | c.m.geom_conaffinity, c.m.geom_type == int(mujoco.mjtGeom.mjGEOM_HFIELD)
    kept = [g for g in range(c.m.ngeom) if solid[g] or not fields[g]]
    for g, shape in zip(kept, c.model.geometries, strict=True):
        body, mesh = c.m.geom_bodyid[g], c.m.geom_dataid[g]
        expected = pose(c.d.xpos[body], c.d.xquat[body]) * pose(c.m.geom_pos[g], c.m.geom_quat[g])
        carrier = (
            dl.Placement.of(rotations[shape.joint], positions[shape.joint]) if shape.joint >= 0 else dl.Placement()
        )
        ours = carrier * shape.placement
        if shape.shape == "mesh" and not shape.vertices:
            ours = ours * pose(c.m.mesh_pos[mesh], c.m.mesh_quat[mesh])
        np.testing.assert_allclose(ours.R, expected.R, atol=1e-10)
        np.testing.assert_allclose(ours.p, expected.p, atol=1e-10)


@every_robot
def test_the_reference_configuration_is_mujocos(name):
    m, model = compiled(name), case(name).model
    np.testing.assert_array_equal(dl.q_to_mujoco(model, model.posture("qpos0")), m.qpos0)


@pytest.mark.parametrize("name", sorted(WITHOUT_JOINTS & set(FILES)))
def test_a_file_without_joints_has_no_coordinates(name):
    assert dl.load(FILES[name]).nq == compiled(name).nq == 0


@pytest.mark.parametrize("name", sorted(REFUSED.keys() & set(FILES)))
def test_what_mujoco_refuses_is_refused_with_its_message_and_where_that_is_written(name):
    with pytest.raises(ModelFileError, match=REFUSED[name]) as refused:
        dl.load(FILES[name])
    file, line = Path(refused.value.file), refused.value.line
    assert file.parent == FILES[name].parent
    assert f"<{refused.value.element}" in file.read_text().splitlines()[line - 1]


@pytest.mark.parametrize("name", sorted(NO_MJCF & set(FILES)))
def test_other_xml_is_no_robot(name):
    with pytest.raises(ModelFileError):
        dl.load(FILES[name])
