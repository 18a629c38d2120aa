"""Export of policies: C99, ONNX, and a NumPy file that does not need Delassus."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from delassus.common.archives import write
from delassus.learning.errors import CheckpointError, LearningError
from delassus.learning.learner.network import LARGEST_INPUT
from delassus.learning.learner.policy import Policy
from delassus.learning.results.onnx import onnx_model

FORMATS: Final = ("c", "numpy", "onnx")

_NUMPY: Final = '''"""The policy of the task {task}: action = policy(observation), with NumPy alone."""

from pathlib import Path

import numpy as np

_FILE = np.load(Path(__file__).with_suffix(".npz"))
_LAYERS = [(_FILE[f"W{{k}}"], _FILE[f"b{{k}}"]) for k in range({layers})]


def policy(observation):
    """Actions (…, {actions}) for observations (…, {observations})."""
    x = np.clip((np.asarray(observation, np.float32) - _FILE["mean"]) * _FILE["scale"], -{limit}, {limit})
    for k, (W, b) in enumerate(_LAYERS):
        x = x @ W.T + b
        if k < len(_LAYERS) - 1:
            x = np.where(x > 0, x, np.expm1(np.minimum(x, 0)))
    return x
'''


def export_policy(policy: Policy, folder: str | os.PathLike[str], kind: str = "c", name: str = "policy") -> list[Path]:
    """Write a policy as files, and give their paths.

    Args:
        policy: What to write.
        folder: Made if needed.
        kind: "c" for C99 in single precision, "numpy" for a module and an archive, "onnx" for ONNX.
        name: Of the files, and of the function in C.

    >>> import tempfile
    >>> policy = dl.learning.bundled_policy("quadruped-walk")
    >>> [path.suffix for path in dl.learning.export_policy(policy, tempfile.mkdtemp(), kind="numpy")]
    ['.py', '.npz']
    """
    if kind not in FORMATS:
        raise LearningError(f"the format is {kind!r}; it must be one of {', '.join(FORMATS)}.", code="unknown-name")
    if not name.isidentifier():
        raise LearningError(f"the function is called {name!r}; its name is an identifier.", code="bad-argument")
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    texts = _WRITERS[kind](policy, name)
    for path, content in texts.items():
        write("the policy", place / path, partial(_put, content), CheckpointError)
    return [place / path for path in texts]


def _put(content: bytes, file: IO[bytes]) -> None:
    file.write(content)


def _numpy_files(policy: Policy, name: str) -> dict[str, bytes]:
    import io

    arrays: dict[str, Any] = {"mean": policy.shared["mean"], "scale": policy.shared["scale"]}
    for k, (W, b) in enumerate(policy.layers()):
        arrays |= {f"W{k}": W, f"b{k}": b}
    data = io.BytesIO()
    np.savez_compressed(data, **arrays)
    network = policy.network
    text = _NUMPY.format(
        task=policy.task,
        layers=len(policy.layers()),
        actions=network.actions,
        observations=network.observations,
        limit=LARGEST_INPUT,
    )
    return {f"{name}.py": text.encode(), f"{name}.npz": data.getvalue()}


def _c_files(policy: Policy, name: str) -> dict[str, bytes]:
    network, guard = policy.network, f"{name.upper()}_H"
    sizes = network.policy_sizes
    header = [
        f"/* The policy of the task {policy.task}: {sizes[0]} observations to {sizes[-1]} actions. C99. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        f"#define {name.upper()}_OBSERVATIONS {sizes[0]}",
        f"#define {name.upper()}_ACTIONS {sizes[-1]}",
        f"void {name}(const float observation[{sizes[0]}], float action[{sizes[-1]}]);",
        "#endif",
        "",
    ]
    source = [f'#include "{name}.h"', "#include <math.h>", ""]
    source += [_c_array(key, policy.shared[key]) for key in ("mean", "scale")]
    for k, (W, c) in enumerate(policy.layers()):
        source += [_c_array(f"W{k}", W.ravel()), _c_array(f"b{k}", c)]
    widest = max(sizes)
    source += [
        "",
        f"void {name}(const float observation[{sizes[0]}], float action[{sizes[-1]}]) {{",
        f"    float x[{widest}], y[{widest}];",
        f"    for (int i = 0; i < {sizes[0]}; ++i)",
        f"        x[i] = fminf(fmaxf((observation[i] - mean[i]) * scale[i], -{LARGEST_INPUT}f), {LARGEST_INPUT}f);",
    ]
    for k in range(len(sizes) - 1):
        a, b = sizes[k], sizes[k + 1]
        last = k == len(sizes) - 2
        source += [
            f"    for (int j = 0; j < {b}; ++j) {{",
            f"        float sum = b{k}[j];",
            f"        for (int i = 0; i < {a}; ++i) sum += W{k}[{a} * j + i] * x[i];",
            "        action[j] = sum;" if last else "        y[j] = sum > 0.0f ? sum : expm1f(sum);",
            "    }",
        ]
        source += [] if last else [f"    for (int j = 0; j < {b}; ++j) x[j] = y[j];"]
    source += ["}", ""]
    return {f"{name}.h": "\n".join(header).encode(), f"{name}.c": "\n".join(source).encode()}


def _c_array(name: str, values: Any) -> str:
    numbers = [f"{float(x):.9g}" for x in np.ravel(values)]
    numbers = [x if any(sign in x for sign in ".en") else f"{x}.0" for x in numbers]
    rows = [", ".join(f"{x}f" for x in numbers[k : k + 8]) for k in range(0, len(numbers), 8)]
    return f"static const float {name}[{len(numbers)}] = {{\n    " + ",\n    ".join(rows) + "};"


def _onnx_files(policy: Policy, name: str) -> dict[str, bytes]:
    return {f"{name}.onnx": onnx_model(policy)}


_WRITERS: Final = {"c": _c_files, "numpy": _numpy_files, "onnx": _onnx_files}
