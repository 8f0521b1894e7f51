"""What a model file holds of a pipeline: names, numbers and texts, one entry for each thing.

=============================  ====================================================================
entry                          holds
=============================  ====================================================================
``pipeline``                   the version of these entries, 1
``pipeline.warm_up``           the parameter
``pipeline.columns``           how many columns there are; 0 if samples are sparse
``pipeline.column.<i>``        the name of column i, from 0 on
``pipeline.named``             1 if the columns had names, 0 if these stand for positions
``pipeline.is_text``           for each column 1 if it is text, 0 if it is numbers
``pipeline.mean``, ``.scale``  of each column of numbers: what to subtract, what to divide by
``pipeline.count``,            the weight of the samples that these are of, and the sum of their
``pipeline.spread``            squared differences from the mean
``pipeline.half_life``         of the scaler, infinite if nothing fades
``pipeline.max_categories``    the parameter
``pipeline.categorical``       numbers of the columns that were said to be categories
``pipeline.places``            for each column of text, how many numbers it becomes
``pipeline.categories``        for each column of text, how many categories have a place
``pipeline.category.<j>.<k>``  the category at place k of the column of text j
``pipeline.first``             the first samples of a stream that has just begun (``_first.py``)
=============================  ====================================================================

A sample is encoded as :class:`Encoding` says. All other entries are those of the estimator.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._encoding import Encoding
from ._scaler import StreamingScaler

VERSION = 1


def write_encoding(archive: Any, scaler: StreamingScaler | None, warm_up: int) -> None:
    """Add the entries of a pipeline."""
    archive["pipeline"] = VERSION
    archive["pipeline.warm_up"] = int(warm_up)
    if scaler is None:
        archive["pipeline.columns"] = 0
        return
    encoding = scaler._encoding_
    archive["pipeline.columns"] = len(encoding.names)
    archive["pipeline.named"] = int(hasattr(scaler, "feature_names_in_"))
    archive["pipeline.is_text"] = np.array(encoding.is_text, dtype=np.int64)
    for name in ("mean", "scale", "count", "spread", "half_life"):
        archive[f"pipeline.{name}"] = getattr(encoding, name)
    archive["pipeline.max_categories"] = int(scaler.max_categories)
    chosen = () if isinstance(scaler.categorical, str) else scaler.categorical
    numbers = [j if isinstance(j, int) else encoding.names.index(j) for j in chosen]
    archive["pipeline.categorical"] = np.array(numbers, dtype=np.int64)
    archive["pipeline.places"] = np.array(encoding.places, dtype=np.int64)
    sizes = [len(known) for known in encoding.categories]
    archive["pipeline.categories"] = np.array(sizes, dtype=np.int64)
    for i, name in enumerate(encoding.names):
        archive[f"pipeline.column.{i}"] = name
    for j, known in enumerate(encoding.categories):
        for k, category in enumerate(known):
            archive[f"pipeline.category.{j}.{k}"] = category


def read_encoding(archive: Any, width: int) -> tuple[StreamingScaler | None, int]:
    """Return the scaler that a file holds, whose samples become so many numbers, and warm_up."""
    if archive["pipeline"] != VERSION:
        raise ValueError(
            f"The file holds a pipeline of version {archive['pipeline']}; this version of parsimon "
            f"reads version {VERSION}: upgrade parsimon."
        )
    warm_up, columns = archive["pipeline.warm_up"], archive["pipeline.columns"]
    if columns == 0:
        return None, warm_up
    sizes = archive["pipeline.categories"]
    encoding = Encoding(
        names=tuple(archive[f"pipeline.column.{i}"] for i in range(columns)),
        is_text=tuple(map(bool, archive["pipeline.is_text"])),
        half_life=float(archive["pipeline.half_life"]),
        count=archive["pipeline.count"],
        mean=archive["pipeline.mean"],
        spread=archive["pipeline.spread"],
        categories=tuple(
            tuple(archive[f"pipeline.category.{j}.{k}"] for k in range(size))
            for j, size in enumerate(sizes)
        ),
        places=tuple(map(int, archive["pipeline.places"])),
    )
    named, chosen = archive["pipeline.named"], archive["pipeline.categorical"].tolist()
    sound = _is_sound(encoding, width) and np.allclose(archive["pipeline.scale"], encoding.scale)
    if not sound or not all(0 <= j < columns for j in chosen):
        raise ValueError("The pipeline in the model file is not that of its estimator.")
    half_life = None if np.isinf(encoding.half_life) else encoding.half_life
    scaler = StreamingScaler(
        half_life=half_life,
        categorical=[encoding.names[j] if named else j for j in chosen] or "auto",
        max_categories=archive["pipeline.max_categories"],
    )
    scaler._check_parameters()
    scaler.n_features_in_ = int(columns)
    if named:
        scaler.feature_names_in_ = np.array(encoding.names, dtype=object)
    scaler._encoding_ = encoding
    return scaler, warm_up


def _is_sound(encoding: Encoding, width: int) -> bool:
    """Tell whether the parts of an encoding belong together."""
    numbers, texts = encoding.is_text.count(False), encoding.is_text.count(True)
    moments = (encoding.count, encoding.mean, encoding.spread)
    return (
        len(encoding.is_text) == len(encoding.names) == len(set(encoding.names))
        and all(isinstance(name, str) for name in encoding.names)
        and all(part.shape == (numbers,) and not np.isnan(part).any() for part in moments)
        and bool(np.isfinite(encoding.mean).all())
        and bool((encoding.count >= 0).all() and (encoding.spread >= 0).all())
        and encoding.half_life > 0
        and len(encoding.categories) == len(encoding.places) == texts
        and all(
            len(set(known)) == len(known) < places and all(isinstance(each, str) for each in known)
            for known, places in zip(encoding.categories, encoding.places, strict=True)
        )
        and encoding.width == width
    )
