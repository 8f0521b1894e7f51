"""What skl2onnx must know to convert pipelines that end with one of our estimators."""

from __future__ import annotations

from typing import Any

import numpy as np

from parsimon._formula import (
    Classes,
    Density,
    OneClass,
    Votes,
    formula_of,
    warn_of_probabilities,
)

from ._onnx import add_model, stored_labels


def register_with_skl2onnx() -> None:
    """Tell skl2onnx how to convert every estimator of parsimon.

    Afterwards ``skl2onnx.to_onnx(pipeline, X[:1], target_opset=18)`` converts pipelines of any
    steps that it knows, with one of ours at the end. A classifier's outputs are its labels and its
    probabilities, or its scores if it has none.
    """
    try:
        from skl2onnx import update_registered_converter
    except ImportError as error:
        raise ImportError(
            "register_with_skl2onnx needs the package skl2onnx: pip install 'parsimon[onnx]'."
        ) from error
    from parsimon._io import known_estimators

    for name, cls in known_estimators().items():
        update_registered_converter(cls, f"Parsimon{name}", _shapes, _convert, overwrite=True)


def _float_type(operator: Any) -> Any:
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    double = isinstance(operator.inputs[0].type, DoubleTensorType)
    return DoubleTensorType if double else FloatTensorType


def _label_type(kind: str) -> Any:
    from skl2onnx.common.data_types import (
        BooleanTensorType,
        DoubleTensorType,
        Int64TensorType,
        StringTensorType,
    )

    kinds = {"i": Int64TensorType, "f": DoubleTensorType, "b": BooleanTensorType}
    return kinds.get(kind, StringTensorType)


def _shapes(operator: Any) -> None:
    formula = formula_of(operator.raw_operator)
    count = operator.inputs[0].get_first_dimension()
    floats = _float_type(operator)
    if isinstance(formula.head, (Classes, Votes, OneClass)):
        labels = _label_type(stored_labels(formula).dtype.kind)
        operator.outputs[0].type = labels([count])
        operator.outputs[1].type = floats([count, None])
    else:
        flat = isinstance(formula.head, Density) or formula.n_outputs == 1
        operator.outputs[0].type = floats([count, 1 if flat else formula.n_outputs])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    formula = formula_of(operator.raw_operator)
    warn_of_probabilities(formula.head, "The graph has", iterates=False)
    graph = _Container(scope, operator, container)
    outputs = add_model(graph, formula, operator.inputs[0].full_name)
    if "label" in outputs:
        second = outputs.get("probabilities", outputs["scores"])
        shown = [outputs["label"], second]
    else:
        name, width = next(iter(outputs.values()))
        if width is None:  # one column, as skl2onnx has it for regressors
            name = graph.node("Unsqueeze", name, graph.constant([1], np.int64))
        shown = [(name, width)]
    for (name, _), output in zip(shown, operator.outputs, strict=False):
        container.add_node(
            "Identity", [name], [output.full_name], name=scope.get_unique_operator_name("Identity")
        )


class _Container:
    """A graph of ours as part of one that skl2onnx makes."""

    def __init__(self, scope: Any, operator: Any, container: Any) -> None:
        from skl2onnx.common.data_types import DoubleTensorType

        self._scope, self._container = scope, container
        double = isinstance(operator.inputs[0].type, DoubleTensorType)
        self.dtype: Any = np.float64 if double else np.float32

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = str(self._scope.get_unique_variable_name(f"parsimon_{kind.lower()}"))
        self._container.add_node(
            kind,
            list(inputs),
            [name],
            name=self._scope.get_unique_operator_name(f"parsimon_{kind}"),
            op_version=18,
            **attributes,
        )
        return name

    def constant(self, value: Any, dtype: Any = None) -> str:
        from onnx import TensorProto, helper

        array = np.asarray(value)
        name = str(self._scope.get_unique_variable_name("parsimon_constant"))
        if array.dtype.kind in "UO":
            texts = [str(text).encode() for text in array.ravel()]
            self._container.add_initializer(name, TensorProto.STRING, array.shape, texts)
            return name
        if dtype is None and array.dtype.kind == "f":
            dtype = self.dtype
        array = np.asarray(array, dtype=dtype)
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        self._container.add_initializer(name, kind, array.shape, array.ravel().tolist())
        return name

    def cast(self, name: str, dtype: Any) -> str:
        from onnx import helper

        return self.node("Cast", name, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
