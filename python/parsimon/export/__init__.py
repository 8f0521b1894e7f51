"""Models that leave: ONNX graphs, C headers, JSON and bytes."""

from ._c import to_c
from ._onnx import to_onnx
from ._skl2onnx import register_with_skl2onnx
from ._text import dumps, from_json, loads, to_json

__all__ = [
    "dumps",
    "from_json",
    "loads",
    "register_with_skl2onnx",
    "to_c",
    "to_json",
    "to_onnx",
]
