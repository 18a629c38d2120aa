"""Codes of errors: each is in the table of docs/errors.md, and each of the table is raised somewhere."""

import ast
import copy
import pickle
import re
from pathlib import Path

import pytest

from delassus.common.names import UnknownName
from delassus.errors import BadArgument, DelassusError
from delassus.model.readers.documents.xml import ModelFileError

ROOT = Path(__file__).parents[2]
TABLE = re.findall(r"^\| `([^`]+)` \|", (ROOT / "docs" / "errors.md").read_text(), re.M)


LANGUAGE = (ast.Raise, ast.ClassDef, ast.FunctionDef, ast.keyword, ast.Assign, ast.AnnAssign)
"""Parts of a program that have to do with codes."""


@pytest.fixture(scope="module")
def parts() -> list[tuple[Path, ast.AST]]:
    """These parts of all files of the package."""
    trees = ((path, ast.parse(path.read_text())) for path in sorted((ROOT / "src" / "delassus").rglob("*.py")))
    return [(path, node) for path, tree in trees for node in ast.walk(tree) if isinstance(node, LANGUAGE)]


def bases(parts: list[tuple[Path, ast.AST]]) -> dict[str, list[str]]:
    """The names of the bases of every class of the package."""
    classes = [node for _, node in parts if isinstance(node, ast.ClassDef)]
    return {node.name: [base.id for base in node.bases if isinstance(base, ast.Name)] for node in classes}


def is_error(name: str, known: dict[str, list[str]]) -> bool:
    return name == "DelassusError" or any(is_error(base, known) for base in known.get(name, ()))


def codes_of(node: ast.AST) -> set[str]:
    """The texts that a part gives as codes: to an error, and as the default of a class or function."""
    if isinstance(node, ast.FunctionDef) and node.name == "code":
        return {text for part in ast.walk(node) if isinstance(part, ast.Return) for text in texts(part.value)}
    return texts(node.value) if "code" in names_given(node) else set()


def names_given(node: ast.AST) -> set[str]:
    """The names to which a keyword or an assignment gives a value."""
    targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
    own = {node.arg} if isinstance(node, ast.keyword) else set()
    return own | {target.id for target in targets if isinstance(target, ast.Name)}


def texts(node: ast.AST | None) -> set[str]:
    if isinstance(node, ast.IfExp):
        return texts(node.body) | texts(node.orelse)
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value else set()


def test_the_table_has_every_code_and_no_other(parts):
    assert set(TABLE) == set().union(*(codes_of(node) for _, node in parts))


def test_the_table_is_sorted_and_names_a_code_once():
    assert sorted(set(TABLE)) == TABLE


@pytest.mark.parametrize("code", TABLE)
def test_a_code_is_written_in_kebab_case(code):
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", code)


def test_errors_without_a_code_of_their_class_are_raised_with_one(parts):
    known = bases(parts)
    coded = {
        node.name
        for _, node in parts
        if isinstance(node, ast.ClassDef) and any(codes_of(part) for part in node.body if isinstance(part, ast.Assign))
    }
    bare = []
    for path, node in parts:
        call = node.exc if isinstance(node, ast.Raise) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and is_error(call.func.id, known):
            general = call.func.id == "BadArgument" or call.func.id not in coded
            if general and "code" not in {keyword.arg for keyword in call.keywords}:
                bare.append(f"{path.name}:{node.lineno}")
    assert not bare


EXAMPLES = [
    BadArgument("a sentence.", code="wrong-shape"),
    ModelFileError("a sentence.", "r.urdf", 4, "axis", code="not-finite"),
    UnknownName("frame", "fot", ["foot"], code="unknown-frame"),
]


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_a_copy_of_an_error_has_its_code(error, duplicate):
    assert duplicate(error).code == error.code != type(error).code


def test_a_code_is_no_part_of_the_message():
    error = DelassusError("a sentence.", code="frozen")
    assert (str(error), error.args) == ("a sentence.", ("a sentence.",))
