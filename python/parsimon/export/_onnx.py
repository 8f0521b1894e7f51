"""Models as ONNX graphs of elementary operators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsimon._formula import (
    Classes,
    Density,
    Formula,
    OneClass,
    Values,
    Votes,
    formula_of,
    warn_of_probabilities,
)

from ._onnx_kernels import Graph, kernel_matrix

Array = NDArray[np.float64]

OPSET = 18
_FLOATS = {"float32": np.float32, "float64": np.float64}


def to_onnx(model: Any, *, dtype: str = "float32", opset: int = OPSET, name: str = "model") -> Any:
    """Write a fitted model down as an ONNX graph.

    The graph is made of elementary operators (Gemm, Exp and the like), which every runtime has;
    a scaler in front is part of it. It has one input, `X`, and these outputs:

    - a classifier: `label`, `scores` (its ``decision_function``) and, if it has them,
      `probabilities`; not, with a warning, those of a compressed SVC of more than two classes and
      of a compressed GaussianProcessClassifier, which take more than elementary operators;
    - a novelty detector: `label` and `scores`;
    - a regressor, a value function or a :class:`KernelExpansion`: `predictions`;
    - a density: `log_density`.

    Parameters
    ----------
    model : estimator, pipeline or KernelExpansion
        Fitted; pipelines may have scalers in front.
    dtype : {"float32", "float64"}, default="float32"
        Type of the input and of all outputs that are not labels. Distances and products are summed
        in double precision in both, as Python does. Scores of "float32" are right to about 1e-6 of
        the sum of the absolute values of their terms, ``abs(weights) * abs(kernel)``: where large
        terms cancel, that is more than 1e-6 of the score.
    opset : int, default=18
        The version of ONNX's operators; 18 or later.
    name : str, default="model"
        The name of the graph.

    Returns
    -------
    onnx.ModelProto
        ``onnx.save(proto, "model.onnx")`` writes it to a file.

    Notes
    -----
    Needs the extra `onnx`. With skl2onnx, pipelines of other steps can be converted:
    :func:`register_with_skl2onnx` tells it how.
    """
    onnx = _package()
    if dtype not in _FLOATS:
        raise ValueError(f"dtype must be 'float32' or 'float64'; got {dtype!r}.")
    newest = onnx.defs.onnx_opset_version()
    if type(opset) is not int or not OPSET <= opset <= newest:
        raise ValueError(
            f"opset must be an integer from {OPSET} to {newest}, which the installed onnx knows; "
            f"got {opset!r}."
        )
    formula = formula_of(model)
    warn_of_probabilities(formula.head, "The graph has", iterates=False)
    graph = _OnnxGraph(_FLOATS[dtype])
    outputs = add_model(graph, formula, "X")
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(_FLOATS[dtype]))
    samples = onnx.helper.make_tensor_value_info("X", kind, [None, formula.n_features])
    results = []
    for label, (inner, width) in outputs.items():
        graph.nodes.append(onnx.helper.make_node("Identity", [inner], [label]))
        labelled = label == "label"
        element = _label_type(formula, onnx) if labelled else kind
        shape = [None] if width is None else [None, width]
        results.append(onnx.helper.make_tensor_value_info(label, element, shape))
    made = onnx.helper.make_graph(graph.nodes, name, [samples], results, graph.constants)
    proto = onnx.helper.make_model(
        made, opset_imports=[onnx.helper.make_opsetid("", opset)], producer_name="parsimon"
    )
    # What every runtime since opset 18 reads, however new the package that writes it is.
    proto.ir_version = min(proto.ir_version, 8 if opset == OPSET else 10)
    onnx.checker.check_model(proto)
    return proto


def _package() -> Any:
    try:
        import onnx
    except ImportError as error:
        raise ImportError(
            "to_onnx needs the package onnx: pip install 'parsimon[onnx]'."
        ) from error
    return onnx


def _label_type(formula: Formula, onnx: Any) -> Any:
    classes = stored_labels(formula)
    if classes.dtype.kind in "UO":
        return onnx.TensorProto.STRING
    return onnx.helper.np_dtype_to_tensor_dtype(classes.dtype)


def stored_labels(formula: Formula) -> NDArray[Any]:
    """Return the labels as one of the types that a graph can hold."""
    if isinstance(formula.head, OneClass):
        return np.array([-1, 1], dtype=np.int64)
    classes: NDArray[Any] = getattr(formula.head, "classes")  # noqa: B009
    if classes.dtype.kind == "b":
        return classes
    if classes.dtype.kind in "iu":
        return classes.astype(np.int64)
    return classes if classes.dtype.kind in "UO" else classes.astype(np.float64)


class _OnnxGraph:
    """Nodes and constants of a graph of its own."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._onnx = _package()

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(self._onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, value: Any, dtype: Any = None) -> str:
        name = f"constant_{len(self.constants)}"
        array = np.asarray(value)
        if array.dtype.kind in "UO":
            tensor = self._onnx.helper.make_tensor(
                name,
                self._onnx.TensorProto.STRING,
                array.shape,
                [str(text).encode() for text in array.ravel()],
            )
        else:
            if dtype is None and array.dtype.kind == "f":
                dtype = self.dtype
            tensor = self._onnx.numpy_helper.from_array(
                np.ascontiguousarray(array, dtype=dtype).reshape(array.shape), name
            )
        self.constants.append(tensor)
        return name

    def cast(self, name: str, dtype: Any) -> str:
        to = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.node("Cast", name, to=to)


def add_model(graph: Graph, formula: Formula, X: str) -> dict[str, tuple[str, int | None]]:
    """Add everything a model does; its outputs by name, each with the columns that it has."""
    x = graph.cast(X, np.float64)
    if formula.scaling is not None:
        x = graph.node("Sub", x, graph.constant(formula.scaling.mean, np.float64))
        x = graph.node("Mul", x, graph.constant(formula.scaling.factor, np.float64))
        if formula.scaling.takes_missing:
            zero = graph.constant(0.0, np.float64)
            x = graph.node("Where", graph.node("IsNaN", x), zero, x)
    if isinstance(formula.head, Density) and formula.head.periodic.any():
        x = _folded(graph, formula.head, x)
    if len(formula.dictionary):
        matrix = kernel_matrix(graph, formula.kernel, x, formula.dictionary)
        values = graph.node("MatMul", matrix, graph.constant(formula.weights))
    else:
        nothing = graph.constant(np.zeros((formula.n_features, formula.n_outputs)), np.float64)
        values = graph.cast(graph.node("MatMul", x, nothing), graph.dtype)
    values = graph.node("Add", values, graph.constant(formula.intercept))
    head = formula.head
    if isinstance(head, Values):
        single = head.single and formula.n_outputs == 1
        flat = _squeezed(graph, values) if single else values
        return {"predictions": (flat, None if single else formula.n_outputs)}
    if isinstance(head, Density):
        return {"log_density": (_log_density(graph, head, values, x), None)}
    if isinstance(head, OneClass):
        score = graph.node("Sub", _squeezed(graph, values), graph.constant(head.offset))
        inlier = graph.node("Not", graph.node("Less", score, graph.constant(0.0)))
        return {"label": (_chosen(graph, formula, inlier), None), "scores": (score, None)}
    if isinstance(head, Votes):
        return _votes(graph, formula, head, values)
    return _classes(graph, formula, head, values)


def _folded(graph: Graph, head: Density, x: str) -> str:
    """Return samples in the domain along what goes round: x - width floor((x - low) / width)."""
    low = graph.constant(head.lower, np.float64)
    width = graph.constant(head.upper - head.lower, np.float64)
    turns = graph.node("Floor", graph.node("Div", graph.node("Sub", x, low), width))
    inside = graph.node("Sub", x, graph.node("Mul", turns, width))
    # What rounding leaves outside is at the border.
    inside = graph.node(
        "Max", graph.node("Min", inside, graph.constant(head.upper, np.float64)), low
    )
    return graph.node("Where", graph.constant(head.periodic), inside, x)


def _squeezed(graph: Graph, values: str) -> str:
    return graph.node("Squeeze", values, graph.constant([1], np.int64))


def _chosen(graph: Graph, formula: Formula, place: str) -> str:
    known = stored_labels(formula)
    labels = graph.constant(known, None if known.dtype.kind in "UO" else known.dtype)
    return graph.node("Gather", labels, graph.cast(place, np.int64))


def _classes(
    graph: Graph, formula: Formula, head: Classes, values: str
) -> dict[str, tuple[str, int | None]]:
    outputs = formula.n_outputs
    found: dict[str, tuple[str, int | None]] = {}
    if len(head.classes) <= 2:
        if outputs == 2:
            difference = graph.constant(np.array([[-1.0], [1.0]]))
            score = _squeezed(graph, graph.node("MatMul", values, difference))
        else:
            score = _squeezed(graph, values)
        # Where there was one class only, it is always the first.
        limit = graph.constant(0.0) if len(head.classes) == 2 else score
        place = graph.node("Greater", score, limit)
        found |= {"label": (_chosen(graph, formula, place), None), "scores": (score, None)}
    else:
        place = graph.node("ArgMax", values, axis=1, keepdims=0)
        found |= {"label": (_chosen(graph, formula, place), None), "scores": (values, outputs)}
    if len(head.classes) == 1 and head.link is not None:
        column = graph.node("Unsqueeze", score, graph.constant([1], np.int64))
        found["probabilities"] = (graph.node("Softmax", column, axis=1), 1)
    elif head.link is not None or head.calibration is not None:
        found["probabilities"] = (_probabilities(graph, head, values), len(head.classes))
    return found


def _probabilities(graph: Graph, head: Classes, values: str) -> str:
    if head.link == "mirror_logistic":
        largest = graph.node("ReduceMax", values, graph.constant([1], np.int64), keepdims=1)
        # Beyond this only the order matters; the exponential stays finite, in single precision too.
        limit = graph.constant(600.0 if graph.dtype == np.float64 else 80.0)
        excess = graph.node("Relu", graph.node("Sub", largest, limit))
        return graph.node("Softmax", graph.node("Exp", graph.node("Sub", values, excess)), axis=1)
    if head.link == "multiclass_logistic":
        return graph.node("Softmax", values, axis=1)
    if head.calibration is not None:
        slope, offset = head.calibration
        values = graph.node("Mul", values, graph.constant(slope))
        values = graph.node("Add", values, graph.constant(offset))
    both = graph.node("Concat", graph.node("Neg", values), values, axis=1)
    return graph.node("Sigmoid", both)


def _votes(
    graph: Graph, formula: Formula, head: Votes, values: str
) -> dict[str, tuple[str, int | None]]:
    table, count = head.tournament, len(head.classes)
    won = graph.cast(graph.node("Greater", values, graph.constant(0.0)), graph.dtype)
    # won (first) + (1 - won) (second)
    votes = graph.node("MatMul", won, graph.constant(table))
    votes = graph.node("Add", votes, graph.constant((table < 0).sum(axis=0).astype(float)))
    confidence = graph.node("MatMul", values, graph.constant(table))
    size = graph.node("Add", graph.node("Abs", confidence), graph.constant(1.0))
    share = graph.node("Div", confidence, graph.node("Mul", size, graph.constant(3.0)))
    scores = graph.node("Add", votes, share)
    place = graph.node("ArgMax", scores if head.by_score else votes, axis=1, keepdims=0)
    shown = (scores, count) if head.per_class else (values, formula.n_outputs)
    return {"label": (_chosen(graph, formula, place), None), "scores": shown}


def _log_density(graph: Graph, head: Density, values: str, x: str) -> str:
    z = _squeezed(graph, values)
    if head.mirror == "mahalanobis":
        height, center, width = head.center_and_width()
        away = graph.node("Sub", x, graph.constant(center, np.float64))
        away = graph.node("Div", away, graph.constant(width, np.float64))
        square = graph.node("ReduceSumSquare", away, graph.constant([1], np.int64), keepdims=0)
        weight = graph.node("Exp", graph.node("Mul", square, graph.constant(-0.5, np.float64)))
        weight = graph.node("Mul", weight, graph.constant(height, np.float64))
        weight = graph.node("Add", weight, graph.constant(0.5, np.float64))
        z = graph.node("Mul", z, graph.cast(weight, graph.dtype))
    if head.mirror != "kl":
        z = graph.node("Log", graph.node("Relu", z))
    z = graph.node("Sub", z, graph.constant(head.log_volume))
    if not head.is_bounded:
        return z
    inside = graph.node(
        "And",
        graph.node("GreaterOrEqual", x, graph.constant(head.lower, np.float64)),
        graph.node("LessOrEqual", x, graph.constant(head.upper, np.float64)),
    )
    inside = graph.node(
        "ReduceMin", graph.cast(inside, np.int32), graph.constant([1], np.int64), keepdims=0
    )
    nothing = graph.constant(-np.inf)
    return graph.node("Where", graph.cast(inside, np.bool_), z, nothing)
