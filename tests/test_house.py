"""The rooms of the house: imports point one way, from the algorithms towards the compiler."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "delassus"
ROOMS = [
    "errors",
    "compiler",
    "numpy",
    "spatial",
    "model",
    "dynamics",
    "constraints",
    "constrained",
    "doctor",
    "terminal",
    "info",
    "cli",
    "__main__",
]
MODULES = [path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py"]


def room(parts: tuple[str, ...]) -> str:
    return parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("delassus"):
            base = (node.module or "").split(".")[1:]
            names |= {base[0]} if base else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("delassus.")}
    return names & set(ROOMS)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_a_room_imports_only_from_rooms_above_it(path):
    own = room(path.relative_to(SOURCE).parts)
    assert all(ROOMS.index(other) <= ROOMS.index(own) for other in imported_rooms(path))


def test_every_room_is_listed():
    assert {room(path.relative_to(SOURCE).parts) for path in MODULES} == set(ROOMS)


def test_the_compiler_does_not_know_what_a_robot_is():
    text = " ".join(path.read_text().lower() for path in (SOURCE / "compiler").glob("*.py"))
    assert not {"robot", "inertia", "urdf"} & set(text.replace(".", " ").replace(",", " ").split())
