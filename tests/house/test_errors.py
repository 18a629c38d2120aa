"""Errors of the package travel between processes: message, data and class survive."""

import copy
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from delassus.common.names import UnknownName
from delassus.compiler.host.cache import _Trouble
from delassus.dynamics.tree.check import SingularMassMatrix
from delassus.errors import DelassusError
from delassus.model.generators import chain
from delassus.model.readers.documents.xml import ModelFileError, NotXml
from delassus.particles.algebra.memory import MemoryWillNotSuffice
from delassus.simulation.checks import RunError
from delassus.simulation.controls import ControlError
from package_modules import import_modules
from refusals import refuses

# Classes whose constructors take more than a sentence; the others are made of one.
EXAMPLES = {
    ControlError: ControlError("a sentence.", 0.1),
    MemoryWillNotSuffice: MemoryWillNotSuffice("a net", 2e9, 1e9, "Use less."),
    ModelFileError: ModelFileError("a sentence.", "r.urdf", 4, "axis"),
    NotXml: NotXml("a sentence.", "r.urdf"),
    RunError: RunError("a sentence.", 0.1),
    SingularMassMatrix: SingularMassMatrix("arm", ("wrist", "elbow")),
    UnknownName: UnknownName("frame", "fot", ["foot", "hand"]),
    _Trouble: _Trouble(Path("/cache"), "is damaged", "Remove it."),
}


def exceptions_of_the_package() -> list[type[Exception]]:
    import_modules()
    own = (cls for cls in all_subclasses(Exception) if cls.__module__.split(".")[0] == "delassus")
    return sorted(own, key=lambda cls: cls.__name__)


def pickled(x):
    return pickle.loads(pickle.dumps(x))


def all_subclasses(cls: type) -> set[type]:
    return {cls}.union(*(all_subclasses(sub) for sub in type.__subclasses__(cls)))


@pytest.mark.parametrize("duplicate", [pickled, copy.copy, copy.deepcopy], ids=lambda duplicate: duplicate.__name__)
@pytest.mark.parametrize("cls", exceptions_of_the_package(), ids=lambda cls: cls.__name__)
def test_an_error_keeps_its_class_message_and_data(cls, duplicate):
    error = EXAMPLES.get(cls) or cls("A sentence.")
    restored = duplicate(error)
    assert type(restored) is cls
    assert (str(restored), restored.args, vars(restored)) == (str(error), error.args, vars(error))


def test_notes_on_an_error_are_kept():
    error = EXAMPLES[UnknownName]
    noted = copy.copy(error)
    noted.add_note("while the robot was loaded")
    assert pickled(noted).__notes__ == ["while the robot was loaded"]


def test_an_error_in_a_worker_process_arrives():
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        future = pool.submit(chain(2).frame, "missing")
        with refuses("unknown-frame", "'missing'") as caught:
            future.result(timeout=120)
    assert caught.value.name == "missing"


def test_every_error_is_found():
    assert {DelassusError, *EXAMPLES} <= set(exceptions_of_the_package())
