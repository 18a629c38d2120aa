"""The examples in docstrings run as they are printed, and most public names have one."""

import ast
import doctest
from pathlib import Path

import numpy as np
import pytest

import delassus as dl

SOURCE = Path(dl.__file__).parent
SHARE = 0.75
"""The least fraction of public names that have an example in their docstring; 279 of 333 had one when it was set."""


def docstrings(path: Path) -> dict[str, str]:
    """The docstrings of a file by name, those of methods as `Class.method`."""
    found = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = ast.get_docstring(node) or ""
        if isinstance(node, ast.ClassDef):
            methods = [child for child in node.body if isinstance(child, ast.FunctionDef)]
            found |= {f"{node.name}.{method.name}": ast.get_docstring(method) or "" for method in methods}
    return found


EXAMPLES = [
    pytest.param(path, name, text, id=f"{path.relative_to(SOURCE)}:{name}")
    for path in sorted(SOURCE.rglob("*.py"))
    for name, text in docstrings(path).items()
    if ">>>" in text
]


@pytest.mark.parametrize(("path", "name", "text"), EXAMPLES)
def test_examples_of_docstrings_run(path, name, text):
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
    assert not failures, "".join(report)


def test_most_public_names_have_an_example():
    spaces = [*dl.NAMESPACES, *dl.OWN_NAMES, "compiler"]
    public = {name for space in spaces for name in getattr(dl, space).__all__}
    shown = {name for path in SOURCE.rglob("*.py") for name, text in docstrings(path).items() if ">>>" in text}
    assert len(public & shown) >= SHARE * len(public), sorted(public - shown)
