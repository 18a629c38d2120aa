"""The rooms of the house: imports point one way, from the algorithms towards the compiler."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "delassus"
ROOMS = [
    "errors",
    "lazy",
    "common",
    "compiler",
    "numpy",
    "linalg",
    "spatial",
    "model",
    "dynamics",
    "geometry",
    "constraints",
    "constrained",
    "contact",
    "step",
    "output",
    "integrators",
    "stepping",
    "simulation",
    "particles",
    "control",
    "learning",
    "derivatives",
    "mujoco",
    "pinocchio",
    "against_mujoco",
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
    """Rooms that a file imports from; a room's own list of public names, for type checkers alone, imports nothing."""
    names, tree = set(), ast.parse(path.read_text())
    if path.name == "__init__.py":
        tree.body = [node for node in tree.body if not isinstance(node, ast.If)]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("delassus"):
            base = (node.module or "").split(".")[1:]
            names |= {base[0]} if base else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("delassus.")}
    return names & set(ROOMS)


@pytest.mark.smoke
def test_a_room_imports_only_from_rooms_above_it():
    for path in MODULES:
        own = room(path.relative_to(SOURCE).parts)
        below = {other for other in imported_rooms(path) if ROOMS.index(other) > ROOMS.index(own)}
        assert not below, f"{path.relative_to(SOURCE)} imports from {below}"


@pytest.mark.smoke
def test_every_room_is_listed():
    assert {room(path.relative_to(SOURCE).parts) for path in MODULES} == set(ROOMS)


@pytest.mark.smoke
def test_the_page_on_architecture_lists_the_rooms_in_order():
    page = (SOURCE.parent.parent / "ARCHITECTURE.md").read_text()
    table = page.partition("| package or module |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == ROOMS


@pytest.mark.smoke
def test_the_compiler_does_not_know_what_a_robot_is():
    text = " ".join(path.read_text().lower() for path in (SOURCE / "compiler").rglob("*.py"))
    assert not {"robot", "inertia", "urdf"} & set(text.replace(".", " ").replace(",", " ").split())


def test_shapes_and_pairs_do_not_know_what_a_robot_is():
    files = [path for inner in ("shapes", "pairs") for path in (SOURCE / "geometry" / inner).rglob("*.py")]
    assert not {room for path in files for room in imported_rooms(path)} & {"model", "dynamics"}


# --- rooms inside rooms -----------------------------------------------------------------------------------------------

INNER = {
    "compiler": ["graph", "functions", "tracing", "backends", "differentiation", "random", "host"],
    "compiler/tracing": ["", "flow", "operations", "record"],
    "compiler/backends": ["", "llvm"],
    "compiler/host": ["bound", ""],
    "model": ["motions", "", "bundled", "readers", "converters", "reports"],
    "model/readers": ["documents", ""],
    "geometry": ["hulls", "shapes", "pairs"],
    "dynamics": ["tree", "kinematics", "mass", "forces", "derivatives"],
    "constraints": ["basis", "kinds", "mechanism"],
    "constrained": ["rows", "elimination", "delassus", "solvers", "projection"],
    "contact": ["cones", "systems", "solvers", "references", "large", "problems"],
    "step": [
        *("actuators", "sources", "", "selection", "scheme", "points", "impacts", "laws"),
        *("articulated", "primal", "stages", "period", "bodies", "compliant", "contact"),
    ],
    "simulation": ["bound", "policies", "", "sensors", "replays"],
    "particles": ["algebra", "description", "builders", "solvers", "contact", "motion"],
    "learning": ["", "environment", "learner", "policies", "tasks", "results", "adapters"],
    "control": ["inverse", "operational", "qp", "reactive", "linear", "sampling"],
}
"""The rooms of a room, in the order in which they may import: "" stands for files that lie in the room itself."""


def inner_room(outer: str, parts: list[str]) -> str:
    return parts[0] if parts and parts[0] in INNER[outer] else ""


def imported_modules(path: Path, for_types: bool = False) -> set[str]:
    """The modules of the package that a file imports at its top; `for_types` adds those that type checkers read."""
    body = ast.parse(path.read_text()).body
    if for_types:
        body = [part for node in body for part in (node.body if isinstance(node, ast.If) else [node])]
    names = set()
    for node in body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("delassus"):
            names |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


@pytest.mark.parametrize("outer", INNER)
def test_inner_rooms_import_only_from_rooms_above_them(outer):
    order, prefix = INNER[outer], ".".join(("delassus", *outer.split("/"), ""))
    for path in (SOURCE / outer).rglob("*.py"):
        parts = list(path.relative_to(SOURCE / outer).with_suffix("").parts)
        own = inner_room(outer, parts)
        if path == SOURCE / outer / "__init__.py" or own not in order:
            continue
        for name in imported_modules(path):
            if name.startswith(prefix):
                other = inner_room(outer, name.removeprefix(prefix).split("."))
                assert other not in order or order.index(other) <= order.index(own), f"{path.name} imports {name}"


@pytest.mark.smoke
def test_every_inner_room_is_listed():
    folders = {path.parent.relative_to(SOURCE) for path in MODULES if len(path.relative_to(SOURCE).parts) > 2}
    assert not {f for f in folders if f.name not in INNER[f.parent.as_posix()]}


def circles() -> set[frozenset[str]]:
    """Groups of modules that import each other, if only for type checkers, directly or by way of others."""
    names = {".".join(p.relative_to(SOURCE).with_suffix("").parts): p for p in MODULES if p.name != "__init__.py"}
    needs = {
        name: {other.removeprefix("delassus.") for other in imported_modules(path, for_types=True)}
        & set(names) - {name}
        for name, path in names.items()
    }

    def reached(name: str) -> set[str]:
        seen: set[str] = set()
        waiting = [name]
        while waiting:
            new = needs[waiting.pop()] - seen
            seen |= new
            waiting += new
        return seen

    reach = {name: reached(name) for name in names}
    return {frozenset(n for n in reach[name] if name in reach[n]) for name in names if name in reach[name]}


@pytest.mark.smoke
def test_modules_import_each_other_in_no_circle():
    assert not circles()


@pytest.mark.smoke
def test_no_room_holds_more_files_than_one_can_look_at():
    files = Counter(path.parent.relative_to(SOURCE).as_posix() for path in MODULES)
    assert not {folder: count for folder, count in files.items() if count > 18}


# --- tests ------------------------------------------------------------------------------------------------------------


def imported_names(path: Path) -> set[str]:
    """Every module that a file imports, anywhere in it."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return plain | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}


@pytest.mark.parametrize("path", sorted(Path(__file__).parents[1].rglob("*.py")), ids=lambda p: p.stem)
def test_no_module_of_the_tests_imports_from_a_test_module(path):
    assert not {name for name in imported_names(path) if name.split(".")[-1].startswith("test_")}
