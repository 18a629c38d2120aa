"""The examples in docstrings run as they are printed, and every public name has one."""

import ast
import doctest
import inspect
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import delassus as dl
from delassus.learning.tasks.catalog import CATALOG
from delassus.model.formats import FORMATS

SOURCE = Path(dl.__file__).parent


def docstrings(path: Path) -> dict[str, str]:
    """The docstrings of a file by name: of functions, classes, methods (`Class.method`), constants and the module."""
    module = ast.parse(path.read_text())
    texts = {path.parent.name if path.stem == "__init__" else path.stem: ast.get_docstring(module) or ""}
    for node, following in pairwise([*module.body, ast.Pass()]):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            texts[node.name] = ast.get_docstring(node) or ""
        if isinstance(node, ast.ClassDef):
            methods = [child for child in node.body if isinstance(child, ast.FunctionDef)]
            texts |= {f"{node.name}.{method.name}": ast.get_docstring(method) or "" for method in methods}
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(following, ast.Expr):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            text = following.value.value if isinstance(following.value, ast.Constant) else ""
            if isinstance(target, ast.Name) and isinstance(text, str):
                texts[target.id] = inspect.cleandoc(text)
    return texts


EXAMPLES = [
    pytest.param(path, name, text, id=f"{path.relative_to(SOURCE)}:{name}")
    for path in sorted(SOURCE.rglob("*.py"))
    for name, text in docstrings(path).items()
    if ">>>" in text
]


@pytest.mark.parametrize(("path", "name", "text"), EXAMPLES)
def test_examples_of_docstrings_run(path, name, text):
    for package in re.findall(r"^>>> import (mujoco|pinocchio)$", text, re.MULTILINE):
        pytest.importorskip(package)
    registered = [(registry, dict(registry)) for registry in (CATALOG, FORMATS)]
    known = {"dl": dl, "np": np}
    if "deprecated" in path.name:
        from delassus.common.deprecated import OldName

        known["OldName"] = OldName
    report: list[str] = []
    example = doctest.DocTestParser().get_doctest(text, known, name, str(path), 0)
    with np.printoptions(precision=3, suppress=True):
        failures = (
            doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example, out=report.append).failed
        )
    for registry, entries in registered:  # an example may register something
        for key in registry.keys() - entries.keys():
            del registry[key]
    assert not failures, "".join(report)


def test_every_public_name_has_an_example():
    spaces = [*dl.NAMESPACES, *dl.OWN_NAMES, "compiler"]
    public = {name for space in spaces for name in getattr(dl, space).__all__}
    shown = {name for path in SOURCE.rglob("*.py") for name, text in docstrings(path).items() if ">>>" in text}
    assert public - shown == set()
