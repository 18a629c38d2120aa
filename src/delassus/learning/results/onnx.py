"""A policy as a model of ONNX (opset 13), written without a dependency.

An ONNX file is a message of protocol buffers: a sequence of fields, each with a number, a type and a value. The field
numbers are those of `onnx.proto`. The graph is Sub, Mul and Clip for the normalization, then Gemm and Elu for each
layer. Its input is
`observation` (n, observations) and its output `action` (n, actions), in single precision.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from delassus.learning.learner.network import LARGEST_INPUT
from delassus.learning.learner.policy import Policy

_FLOAT: Final = 1
_IR_VERSION: Final = 7
_OPSET: Final = 13
_ATTRIBUTE_INT: Final = 2


def onnx_model(policy: Policy) -> bytes:
    """The content of an ONNX file of a policy."""
    shared, limit = policy.shared, np.float32(LARGEST_INPUT)
    tensors: dict[str, Any] = {"mean": shared["mean"], "scale": shared["scale"], "low": -limit, "high": limit}
    nodes = [
        _node("Sub", ("observation", "mean"), "difference"),
        _node("Mul", ("difference", "scale"), "ratio"),
        _node("Clip", ("ratio", "low", "high"), "y0"),
    ]
    weights = policy.layers()
    for k, (W, b) in enumerate(weights):
        tensors |= {f"W{k}": W, f"b{k}": b}
        is_last = k == len(weights) - 1
        nodes.append(_node("Gemm", (f"y{k}", f"W{k}", f"b{k}"), "action" if is_last else f"x{k}", transB=1))
        if not is_last:
            nodes.append(_node("Elu", (f"x{k}",), f"y{k + 1}"))
    graph = b"".join(_field(1, node) for node in nodes) + _field(2, policy.task)
    graph += b"".join(_field(5, _tensor(name, value)) for name, value in tensors.items())
    graph += _field(11, _port("observation", policy.network.observations))
    graph += _field(12, _port("action", policy.network.actions))
    opset = _field(1, "") + _field(2, _OPSET)
    return _field(1, _IR_VERSION) + _field(2, "delassus") + _field(7, graph) + _field(8, opset)


def _node(kind: str, inputs: tuple[str, ...], output: str, **integers: int) -> bytes:
    attributes = [_field(1, name) + _field(3, value) + _field(20, _ATTRIBUTE_INT) for name, value in integers.items()]
    message = b"".join(_field(1, name) for name in inputs) + _field(2, output) + _field(4, kind)
    return message + b"".join(_field(5, one) for one in attributes)


def _tensor(name: str, values: Any) -> bytes:
    array = np.asarray(values, "<f4")
    sizes = b"".join(_field(1, size) for size in array.shape)
    return sizes + _field(2, _FLOAT) + _field(8, name) + _field(9, array.tobytes())


def _port(name: str, size: int) -> bytes:
    """An input or output (n, size) with a variable n."""
    shape = _field(1, _field(2, "n")) + _field(1, _field(1, size))
    return _field(1, name) + _field(2, _field(1, _field(1, _FLOAT) + _field(2, shape)))


def _field(number: int, value: int | str | bytes) -> bytes:
    """A field of a message: an integer, or bytes with their length."""
    if isinstance(value, int):
        return _variable_length(number << 3) + _variable_length(value)
    content = value.encode() if isinstance(value, str) else value
    return _variable_length(number << 3 | 2) + _variable_length(len(content)) + content


def _variable_length(value: int) -> bytes:
    """A nonnegative integer as bytes with seven bits each, the lowest first."""
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
