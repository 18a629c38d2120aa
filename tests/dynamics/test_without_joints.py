"""Models in which nothing moves: every kernel gives the arrays that its signature promises, or says why it cannot."""

import inspect

import numpy as np
import pytest

import delassus as dl
from delassus.compiler.host.kernel import Kernel
from delassus.model.model import Model
from delassus.model.parts import Frame
from package_modules import import_modules
from refusals import refuses

STILL = Model("still", (), (Frame("base", -1),))
HELD = dl.Mechanism(STILL)
OPTIONS = {"frame": "base", "restitution": ()}
NEEDS_ROWS = {"optimality", "constraint_wrench"}  # what is called only where there are rows
WITHOUT_MASS = {
    "center_of_mass",
    "center_of_mass_jacobian",
    *(name for name in dir(dl.dynamics) if name.startswith("centroidal_")),
}


def kernels() -> dict[str, Kernel]:
    """All kernels of the package that take a robot."""
    found = {}
    for module in import_modules():
        if module.__name__ != "delassus.doctor":
            kernels = (member for member in vars(module).values() if isinstance(member, Kernel))
            found |= {kernel.name: kernel for kernel in kernels if kernel.takes in (dl.Model, dl.Mechanism)}
    return dict(sorted(found.items()))


KERNELS = kernels()


def arguments(name):
    """What a kernel is called with on the still robot: the robot, arrays of zeros, options."""
    kernel = KERNELS[name]
    first = next(iter(inspect.signature(kernel.function).parameters.values()))
    robot = HELD if getattr(first.annotation, "__name__", first.annotation) == "Mechanism" else STILL
    needed = [option for option, value in kernel.options.items() if value is inspect.Parameter.empty]
    inputs, _ = kernel.operands(robot)
    return robot, [np.zeros(operand.shape) for operand in inputs], {option: OPTIONS[option] for option in needed}


def shapes(results):
    return [np.shape(result) for result in (results if isinstance(results, tuple) else (results,))]


@pytest.mark.parametrize("name", sorted(KERNELS.keys() - WITHOUT_MASS - NEEDS_ROWS))
def test_the_plain_function_gives_arrays_of_the_promised_shapes(name):
    robot, arrays, options = arguments(name)
    _, outputs = KERNELS[name].operands(robot)
    assert shapes(KERNELS[name].python(robot, *arrays, **options)) == [operand.shape for operand in outputs]


@pytest.mark.parametrize("name", sorted(WITHOUT_MASS))
@pytest.mark.parametrize("way", ["python", "__call__"])
def test_a_robot_without_mass_has_no_centre(name, way):
    robot, arrays, options = arguments(name)
    with refuses("no-mass"):
        getattr(KERNELS[name], way)(robot, *arrays, **options)


@pytest.mark.parametrize("way", ["python", "__call__"])
def test_a_frame_that_is_not_there_is_refused_though_the_result_is_empty(way):
    with refuses("unknown-frame", "'elsewhere'"):
        getattr(dl.frame_jacobian, way)(STILL, np.zeros(0), frame="elsewhere")


def test_a_robot_without_frames_has_no_placements():
    assert shapes(dl.frame_placements.python(Model("bare", ()), np.zeros(0))) == [(0, 3, 3), (0, 3)]


def test_a_robot_that_cannot_move_is_assembled():
    assert dl.assemble(HELD, np.zeros((5, 0))).q.shape == (5, 0)


def test_a_function_of_what_cannot_move_is_no_constraint():
    with refuses("immovable"):
        dl.Mechanism(STILL, dl.Implicit(lambda kinematics, q: kinematics.position("base")[:1], rows=1))
