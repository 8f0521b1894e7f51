"""What the outputs of a model mean, as entries of its file that C++ programs read as well.

=================  ================================================================================
entry              holds
=================  ================================================================================
``output.mean``,   of each output: a prediction is the core's output times the scale, which is 1 if
``output.scale``   the file does not tell it, plus the mean
``output.single``  1 if targets were numbers, 0 if they were rows of numbers
``labels``         the labels of the classes, in order, if they are integers or numbers
``labels.<i>``     label i, if they are texts, or integers that 64 bits with a sign do not hold
``labels.type``    NumPy's name of their type, ``text``, or ``object`` for texts in such an array
``threshold``      of a detector of novelties: outliers are samples whose output is below it
``votes``          of a classifier that was compressed: whether there is an output for each pair of
                   classes, whether its decision function has a number for each class all the same,
                   and whether that decides
``calibration.*``  of the same: ``slope`` and ``offset`` of the logits, one for each output
``density.*``      of a density that was compressed: what is subtracted from its logarithm,
                   ``log_volume``; ``mirror``, ``mirror.parameters``, ``domain.lower`` and
                   ``domain.upper`` as those of other densities, the last two only if it has bounds;
                   ``domain.periodic``, where a 1 for a feature means that samples are folded into
                   the domain along it, only if there is one
=================  ================================================================================
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core

# NumPy's names of types that a file may have: no other text is shown to NumPy.
NUMBERS = re.compile(r"[<>|=][biuf][1248]")

# Attributes that are numbers as they are, and their entries.
_VECTORS = {"intercept_": "output.mean", "_scale_": "output.scale"}
_VOTES = ("_votes_", "_per_class_", "_by_score_")
_CALIBRATION = {"_slope_": "calibration.slope", "_offsets_": "calibration.offset"}


def write_meaning(archive: _core.Archive, fitted: dict[str, Any]) -> dict[str, Any]:
    """Add the entries of fitted attributes; return the attributes that have none."""
    rest = dict(fitted)
    for attribute, entry in _VECTORS.items():
        if attribute in rest:
            archive[entry] = rest.pop(attribute)
    if "_single_" in rest:
        archive["output.single"] = int(rest.pop("_single_"))
    if "offset_" in rest:
        archive["threshold"] = float(rest.pop("offset_"))
    if "classes_" in rest:
        _write_labels(archive, rest.pop("classes_"))
    if "_votes_" in rest:
        _write_labels(archive, rest.pop("_labels_"))
        archive["votes"] = np.array([int(rest.pop(name)) for name in _VOTES])
        for attribute, entry in _CALIBRATION.items():
            numbers = rest.pop(attribute)
            if len(numbers):
                archive[entry] = numbers
    if "_log_volume_" in rest:
        _write_density(archive, rest)
    return rest


def _write_density(archive: _core.Archive, rest: dict[str, Any]) -> None:
    archive["density.log_volume"] = float(rest.pop("_log_volume_"))
    archive["mirror"] = rest.pop("_mirror_")
    archive["mirror.parameters"] = np.asarray(rest.pop("_mirror_numbers_"), dtype=np.float64)
    box = rest.pop("_box_")
    if rest.pop("_bounded_"):
        archive["domain.lower"], archive["domain.upper"] = box
    periodic = rest.pop("_periodic_")
    if periodic.any():
        archive["domain.periodic"] = periodic.astype(np.float64)


def read_meaning(archive: _core.Archive, outputs: int) -> dict[str, Any]:
    """Return the fitted attributes that a file has entries for; earlier versions had none."""
    fitted = {name: archive[entry] for name, entry in _VECTORS.items() if entry in archive}
    if "output.single" in archive:
        fitted["_single_"] = archive["output.single"] != 0
    if "threshold" in archive:
        fitted["offset_"] = archive["threshold"]
    if "votes" in archive:
        flags = archive["votes"].tolist()
        fitted |= {name: flag != 0 for name, flag in zip(_VOTES, flags, strict=True)}
        # As many classes as there are pairs of them.
        pairs = fitted["_votes_"]
        count = (1 + math.isqrt(1 + 8 * outputs)) // 2 if pairs else max(outputs, 2)
        fitted["_labels_"] = _read_labels(archive, count)
        for attribute, entry in _CALIBRATION.items():
            fitted[attribute] = archive[entry] if entry in archive else np.empty(0)
    elif "labels.type" in archive:
        fitted["classes_"] = _read_labels(archive, max(outputs, 2))
    if "density.log_volume" in archive:
        fitted |= _read_density(archive)
    return fitted


def _read_density(archive: _core.Archive) -> dict[str, Any]:
    bounded = "domain.lower" in archive
    faces = [archive["domain.lower"], archive["domain.upper"]] if bounded else None
    # A file without points may claim any number of features, which cost it nothing.
    points, features = archive["dictionary"].shape
    sides = features if points else 0
    box = np.zeros((2, sides)) if faces is None else np.stack(faces)
    none = np.zeros(box.shape[1])
    periodic = archive.get("domain.periodic", none)
    return {
        "_log_volume_": archive["density.log_volume"],
        "_mirror_": archive["mirror"],
        "_mirror_numbers_": archive["mirror.parameters"],
        "_bounded_": bounded,
        "_box_": box,
        "_periodic_": periodic != 0,
    }


def check_labels(classes: NDArray[Any]) -> None:
    """Refuse labels that a file cannot keep."""
    kind, size = classes.dtype.kind, classes.dtype.itemsize
    texts = kind == "U" or (kind == "O" and all(isinstance(label, str) for label in classes))
    for label in classes.tolist() if texts else ():
        if not _is_kept(label):
            raise ValueError(
                f"The label {label!r} is a text that a model file cannot keep: it must be UTF-8."
            )
    if not texts and not (kind in "biuf" and size <= 8):
        raise ValueError(
            f"The labels are of the type {classes.dtype} ({classes[0]!r}, ...), which a model "
            f"file cannot keep; use labels that are text, integers or floats of at most 64 bits."
        )


def _is_kept(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a pair of surrogates
        return False
    return True


def _write_labels(archive: _core.Archive, classes: NDArray[Any]) -> None:
    check_labels(classes)
    kind = classes.dtype.kind
    names = {"U": "text", "O": "object"}
    archive["labels.type"] = names.get(kind, classes.dtype.str)
    too_large = kind == "u" and classes.max() > np.iinfo(np.int64).max
    if kind in names or too_large:
        for i, label in enumerate(classes.tolist()):
            archive[f"labels.{i}"] = str(label)
    else:
        archive["labels"] = classes.astype(np.float64 if kind == "f" else np.int64)


def _read_labels(archive: _core.Archive, count: int) -> NDArray[Any]:
    name = archive["labels.type"]
    if name not in ("text", "object") and not NUMBERS.fullmatch(name):
        raise ValueError(f"The file holds labels of the unknown type {name!r}.")
    if "labels" in archive:
        stored = archive["labels"]
        with np.errstate(invalid="ignore", over="ignore"):
            classes: NDArray[Any] = stored.astype(name)
        if not np.array_equal(classes, stored):
            raise ValueError(f"The labels in the file are none of the type {name!r}.")
        return classes
    if count == 2 and "labels.1" not in archive:  # there was only one class so far
        count = 1
    texts = [archive[f"labels.{i}"] for i in range(count)]
    if name in ("text", "object"):
        return text_array(texts, as_objects=name == "object")
    return np.array([int(text) for text in texts], dtype=name)


def text_array(texts: Any, *, as_objects: bool) -> NDArray[Any]:
    """Return an array of texts; one text that is long must not make room for all to be so."""
    array = np.array(texts, dtype=object)
    if as_objects or not array.size:
        return array if as_objects else array.astype(np.str_)
    lengths = [len(text) for text in array.ravel()]
    return (
        array if len(lengths) * max(lengths) > 16 * sum(lengths) + 2**16 else array.astype(np.str_)
    )
