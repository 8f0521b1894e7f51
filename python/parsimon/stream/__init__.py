"""Streams: blocks from files of any size, test-then-train evaluation, features of mixed columns."""

from parsimon.plotting import PrequentialDisplay

from ._blocks import in_blocks, read_blocks
from ._pipeline import StreamingPipeline
from ._prequential import PrequentialResult, prequential
from ._scaler import StreamingScaler

__all__ = [
    "PrequentialDisplay",
    "PrequentialResult",
    "StreamingPipeline",
    "StreamingScaler",
    "in_blocks",
    "prequential",
    "read_blocks",
]
