"""What a kernel is compiled for: what its function reads, and nothing else."""

import dataclasses
import sys
from dataclasses import replace

import pytest

import delassus as dl
from delassus.compiler.graph.digest import UNREAD, content_digest
from delassus.compiler.host.kernel import Kernel
from delassus.model.model import Model
from delassus.model.parts import Geometry, Posture
from delassus.model.placement import HERE

ROBOT = dl.load("double_pendulum")
HELD = dl.Mechanism(ROBOT, dl.Point("tip", rows="x"))
ALIKE = {
    "name": replace(ROBOT, name="another"),
    "visuals": replace(ROBOT, geometries=(Geometry("ball", 0, HERE, "sphere", (0.1,), "visual"),)),
    "postures": replace(ROBOT, postures=(Posture("up", (3.0, 0.0)),)),
}
PUBLIC = [getattr(getattr(dl, room), name) for room in dl.NAMESPACES for name in getattr(dl, room).__all__]
KERNELS = {k.name: k for k in PUBLIC if isinstance(k, Kernel) and k.takes in (dl.Model, dl.Mechanism)}
NEEDED = {"frame": "tip", "constraint": "tip"}


@dl.kernel("()->()")
def doubled(model, x):
    return 2.0 * x


@dl.kernel("()->()")
def letters(model, x):
    return x + len(model.name)


@dl.kernel("()->()")
def steps(mechanism, x):
    return x * mechanism.step


@pytest.mark.parametrize("what", ALIKE)
def test_what_no_algorithm_reads_of_a_robot_does_not_compile_again(what):
    assert dl.aba.specialize(ALIKE[what]) is dl.aba.specialize(ROBOT)


@pytest.mark.parametrize("what", ALIKE)
def test_what_no_algorithm_reads_is_no_part_of_the_key_on_disk(what):
    assert ALIKE[what] != ROBOT
    assert content_digest(ALIKE[what]) == content_digest(ROBOT)


def test_the_step_of_a_mechanism_does_not_compile_again():
    finer = replace(HELD, step=1e-3)
    assert finer != HELD
    assert dl.prox_pv.specialize(finer) is dl.prox_pv.specialize(HELD)


def test_another_mass_compiles_again():
    heavier = replace(ROBOT.joints[0], inertia=replace(ROBOT.joints[0].inertia, mass=7.0))
    other = replace(ROBOT, joints=(heavier, *ROBOT.joints[1:]))
    assert dl.aba.specialize(other) is not dl.aba.specialize(ROBOT)


@pytest.mark.parametrize("what", ALIKE)
def test_a_users_kernel_that_does_not_read_it_does_not_compile_again(what):
    assert doubled.specialize(ALIKE[what]) is doubled.specialize(ROBOT)


def test_a_users_kernel_that_reads_the_name_has_the_right_one():
    assert [letters(model, 0.0) for model in (ROBOT, ALIKE["name"], ROBOT)] == [len("double_pendulum"), 7, 15]


def test_a_users_kernel_that_reads_the_step_has_the_right_one():
    assert [steps(replace(HELD, step=h), 1.0) for h in (0.5, 0.25)] == [0.5, 0.25]


def test_versions_that_share_their_code_are_counted_once():
    shared = dl.kernel("()->()")(lambda model, x: 3.0 * x)
    memory = shared.compiled(0).memory
    before = dl.kernel_memory()
    try:
        dl.kernel_memory(round(2.5 * memory))
        for model in range(1, 5):
            shared.compiled(model)
        assert len(shared._versions.built) == 5
    finally:
        dl.kernel_memory(before)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_no_kernel_of_the_package_reads_what_it_is_not_compiled_for(kernel, monkeypatch):
    model = HELD if kernel.takes is dl.Mechanism else ROBOT
    options = {name: value for name, value in NEEDED.items() if name in kernel.options}
    kernel.program(model, **options)  # what is kept by the content of a robot is known from here on
    unread = {
        (kind, f.name) for kind in (Model, dl.Mechanism) for f in dataclasses.fields(kind) if f.metadata == UNREAD
    }
    read = set()

    def noted(self, name):
        if sys._getframe(1).f_code.co_name not in ("__hash__", "__eq__"):  # of what is kept by content
            read.update(pair for pair in unread if name == pair[1] and issubclass(type(self), pair[0]))
        return object.__getattribute__(self, name)

    assert unread
    for kind in (Model, dl.Mechanism):
        monkeypatch.setattr(kind, "__getattribute__", noted)
    kernel.program(model, **options)
    assert not read
    assert ROBOT.name
    assert read
