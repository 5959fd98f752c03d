"""A machine as an ONNX graph of plain operators, which any runtime of ONNX can compute (extra ``onnx``).

Input ``X`` (rows, features) is float64, or float32 if the machine was trained with that. Outputs are
``label``, ``scores`` (what ``decision_function`` returns) and, if there is a temperature, ``probabilities``.
All is computed in float64: squared distances as ‖a‖² + ‖b‖² - 2 a·b would lose too many digits in float32.
For the same reason the mean of the support vectors is subtracted from both.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from ..kernels import RBF, CallableKernel, Laplacian, Linear, Polynomial, Precomputed, Sigmoid
from ..system.arithmetic import as_float64, dense
from ..system.atomic import prepare, replacing
from ..system.typing import FloatArray
from .machine import TrainedMachine

_OPSET, _IR = 17, 8
_LARGEST = (1 << 31) - (1 << 20)  # bytes of a file in ONNX's format


def write_onnx(path: str | os.PathLike[str], machine: TrainedMachine, scaling: Any = None) -> None:
    """Write the graph; ``ValueError`` if the kernel has none, ``ImportError`` without the extra."""
    graph = _Graph()
    X = "X"
    if machine.single:
        X = graph.node("Cast", "X", to=graph.types.DOUBLE)
    if scaling is not None:
        X = _scaled(graph, X, scaling)
    if isinstance(machine.kernel, Linear):
        scores = graph.node("MatMul", X, graph.number(_weights(machine)))
    else:
        scores = graph.node("MatMul", kernel_values(graph, X, machine), graph.number(machine.coef))
    scores = graph.node("Add", scores, graph.number(machine.intercept))
    content = graph.finish(scores, machine)
    if len(content) > _LARGEST:
        raise ValueError(f"The model has {len(content)} bytes in ONNX's form, which is limited to 2 GiB.")
    target = Path(path)
    prepare(target, "model file")
    with replacing(target) as file:
        file.write(content)


def _weights(machine: TrainedMachine) -> FloatArray:
    """The weights of a linear machine, (features, outputs)."""
    if machine.support is None:
        return machine.coef
    return np.asarray(as_float64(machine.support).T @ machine.coef)


def _scaled(graph: _Graph, X: str, scaling: Any) -> str:
    """New data in the scale of the training data."""
    if scaling.kind == "unit":
        norms = graph.node("ReduceSumSquare", X, axes=[1], keepdims=1)
        length = graph.node("Sqrt", norms)
        positive = graph.node("Greater", norms, graph.number(0.0))
        return graph.node("Div", X, graph.node("Where", positive, length, graph.number(1.0)))
    moved = graph.node("Sub", X, graph.number(np.asarray(scaling.offset, dtype=np.float64)))
    return graph.node("Mul", moved, graph.number(np.asarray(scaling.factor, dtype=np.float64)))


def kernel_values(graph: _Graph, X: str, machine: TrainedMachine) -> str:
    """The values of the kernel between new rows and the support vectors."""
    kernel = machine.kernel
    if isinstance(kernel, CallableKernel):
        raise ValueError("A kernel that is a Python function has no form in ONNX.")
    if isinstance(kernel, Precomputed):
        return graph.node("Gather", X, graph.constant(np.asarray(machine.support, np.int64)), axis=1)
    support = np.ascontiguousarray(dense(as_float64(machine.support)))
    if isinstance(kernel, RBF):
        return _gaussian(graph, X, support, float(kernel.gamma))
    if isinstance(kernel, Laplacian):
        distances = _distances(graph, X, support)
        return graph.node("Exp", graph.node("Mul", distances, graph.number(-float(kernel.gamma))))
    dots = graph.node("MatMul", X, graph.number(support.T))
    if not isinstance(kernel, Polynomial | Sigmoid):
        raise ValueError(f"The kernel {kernel!r} has no form in ONNX.")
    inner = _affine(graph, dots, kernel)
    if isinstance(kernel, Sigmoid):
        return graph.node("Tanh", inner)
    powers = graph.node("Pow", inner, graph.number(float(kernel.degree)))
    return _normalized(graph, X, powers, kernel, support) if kernel.normalize else powers


def _affine(graph: _Graph, dots: str, kernel: Polynomial | Sigmoid) -> str:
    scaled = graph.node("Mul", dots, graph.number(float(kernel.gamma)))
    return graph.node("Add", scaled, graph.number(float(kernel.coef0)))


def _gaussian(graph: _Graph, X: str, support: FloatArray, gamma: float) -> str:
    centre = support.mean(axis=0) if len(support) else np.zeros(support.shape[1])
    support = support - centre
    X = graph.node("Sub", X, graph.number(centre))
    dots = graph.node("MatMul", X, graph.number(-2.0 * support.T))
    own = graph.node("ReduceSumSquare", X, axes=[1], keepdims=1)
    squares = graph.node("Add", graph.node("Add", dots, own), graph.number(np.square(support).sum(axis=1)))
    squares = graph.node("Max", squares, graph.number(0.0))
    return graph.node("Exp", graph.node("Mul", squares, graph.number(-gamma)))


def _distances(graph: _Graph, X: str, support: FloatArray) -> str:
    """The sums of absolute differences, one row of X at a time: all at once would take too much memory."""
    helper, types = graph.helper, graph.types
    row = helper.make_tensor_value_info("row", types.DOUBLE, [support.shape[1]])
    out = helper.make_tensor_value_info("distances", types.DOUBLE, [len(support)])
    axes = helper.make_tensor("axes", types.INT64, [1], [1])
    vectors = graph.onnx.numpy_helper.from_array(support, "vectors")
    body = helper.make_graph(
        [
            helper.make_node("Sub", ["vectors", "row"], ["differences"]),
            helper.make_node("Abs", ["differences"], ["absolute"]),
            helper.make_node("ReduceSum", ["absolute", "axes"], ["distances"], keepdims=0),
        ],
        "one row",
        [row],
        [out],
        [vectors, axes],
    )
    return graph.node("Scan", X, body=body, num_scan_inputs=1)


def _normalized(graph: _Graph, X: str, powers: str, kernel: Polynomial, support: FloatArray) -> str:
    """Values divided by √(K(a, a) K(b, b)); 0 if K(a, a) is not positive."""
    own = _affine(graph, graph.node("ReduceSumSquare", X, axes=[1], keepdims=1), kernel)
    own = graph.node("Pow", own, graph.number(float(kernel.degree)))
    positive = graph.node("Greater", own, graph.number(0.0))
    root = graph.node("Sqrt", graph.node("Where", positive, own, graph.number(1.0)))
    values = graph.node("Div", graph.node("Mul", powers, graph.number(kernel.scale(support))), root)
    return graph.node("Where", positive, values, graph.number(0.0))


class _Graph:
    """A graph that grows by one operator at a time."""

    def __init__(self) -> None:
        try:
            import onnx
        except ImportError as error:
            raise ImportError(
                "Export to ONNX needs the package onnx: pip install 'multimargin[onnx]'."
            ) from error
        self.onnx: Any = onnx
        self.helper: Any = onnx.helper
        self.types: Any = onnx.TensorProto
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def node(self, operator: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """Add an operator; the name of its output."""
        output = name or f"{operator.lower()}{len(self._nodes)}"
        self._nodes.append(self.helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def constant(self, values: np.ndarray) -> str:
        """Add an array; its name."""
        name = f"constant{len(self._constants)}"
        self._constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def number(self, values: Any) -> str:
        """Add an array or a number in float64."""
        return self.constant(np.array(values, dtype=np.float64, order="C"))

    def finish(self, scores: str, machine: TrainedMachine) -> bytes:
        """Add the outputs; the content of the file."""
        helper, types = self.helper, self.types
        classes, kind = _labels(machine.classes, types)
        two = len(machine.classes) == 2
        if two:
            flat = self.node("Squeeze", scores, self.constant(np.array([1])), name="scores")
            best = self.node("Cast", self.node("Greater", flat, self.number(0.0)), to=types.INT64)
        else:
            self.node("Identity", scores, name="scores")
            best = self.node("ArgMax", scores, axis=1, keepdims=0)
        self.node("Gather", self.constant(classes), best, name="label")
        shape: list[Any] = ["rows"] if two else ["rows", len(classes)]
        outputs = [
            helper.make_tensor_value_info("label", kind, ["rows"]),
            helper.make_tensor_value_info("scores", types.DOUBLE, shape),
        ]
        if machine.temperature is not None:
            self._probabilities(scores, two, machine.temperature)
            wide = ["rows", len(classes)]
            outputs.append(helper.make_tensor_value_info("probabilities", types.DOUBLE, wide))
        given = types.FLOAT if machine.single else types.DOUBLE
        inputs = [helper.make_tensor_value_info("X", given, ["rows", machine.features])]
        graph = helper.make_graph(self._nodes, "multimargin", inputs, outputs, self._constants)
        operators = [helper.make_opsetid("", _OPSET)]
        model = helper.make_model(graph, opset_imports=operators, ir_version=_IR, producer_name="multimargin")
        self.onnx.checker.check_model(model)
        return bytes(model.SerializeToString())

    def _probabilities(self, scores: str, two: bool, temperature: float) -> None:
        divided = self.node("Div", scores, self.number(temperature))
        if two:  # one score s stands for -s/2 and s/2
            halves = self.number([[-0.5, 0.5]])
            divided = self.node("MatMul", divided, halves)
        self.node("Softmax", divided, name="probabilities", axis=1)


def _labels(classes: np.ndarray, types: Any) -> tuple[np.ndarray, int]:
    """Labels as ONNX has them: whole numbers, float64, bool or text."""
    if classes.dtype.kind in "iu":
        return classes.astype(np.int64), types.INT64
    if classes.dtype.kind == "f":
        return classes.astype(np.float64), types.DOUBLE
    if classes.dtype.kind == "b":
        return classes, types.BOOL
    if all(isinstance(label, str) for label in classes.tolist()):
        return classes.astype(object), types.STRING
    raise ValueError(f"Labels of type {classes.dtype} have no form in ONNX: use whole numbers or text.")
