"""docs/file_format.md: enough to read a model file with nothing else."""

import re
import struct
import warnings
from pathlib import Path

import numpy as np
import pytest
from intensity_common import PLANE, cloud
from polk_common import GIVEN, task
from test_predict_in_cxx import fitted_models

import parsimon
from parsimon import _core

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "file_format.md").read_text(encoding="utf-8")


def checksum(data):
    value = 14695981039346656037
    for byte in data:
        value = (value ^ byte) * 1099511628211 % 2**64
    return value


def entries_of(data):
    """Read a file as the page says, and in no other way."""
    magic, version, count, length, stored = struct.unpack_from("<8sIIQQ", data)
    assert magic == bytes.fromhex("89 50 52 53 4D 0D 0A 1A")
    assert (version, length) == (1, len(data))
    assert stored == checksum(data[:24] + data[32:])
    entries, at = {}, 32
    for _ in range(count):
        (size,) = struct.unpack_from("<I", data, at)
        name = data[at + 4 : at + 4 + size].decode()
        at += 4 + size
        kind, rank = data[at], data[at + 1]
        shape = struct.unpack_from(f"<{rank}Q", data, at + 2)
        at += 2 + 8 * rank
        if kind == 1:
            entries[name] = data[at : at + shape[0]].decode()
            at += shape[0]
        else:
            dtype = {3: "<i8", 4: "<f8"}[kind]
            many = int(np.prod(shape))
            entries[name] = np.frombuffer(data, dtype, many, at).reshape(shape)
            at += 8 * many
    assert at == len(data)
    assert list(entries) == sorted(entries)
    return entries


def all_models():
    yield from fitted_models()
    X, y = task()
    names = np.array(["ash", "beech", "cedar", "date", "elm"])[y]
    yield parsimon.POLKClassifier(**GIVEN).fit(X[:200], names[:200])
    densities = [
        parsimon.SPPPOTIntensity(**PLANE),
        parsimon.MirrorNewtonIntensity(**PLANE),
        parsimon.HybridIntensity(**PLANE, patience=5),
    ]
    for model in densities:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of one pass not being enough
            yield model.partial_fit(cloud()[:300])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    for i, model in enumerate(all_models()):
        model.save(path / str(i))
    return sorted(path.iterdir())


def test_the_page_is_enough_to_read_a_file(files):
    for path in files:
        data = path.read_bytes()
        if len(data) > 60_000:  # Python takes its time for a checksum
            continue
        found, expected = entries_of(data), _core.Archive.read(str(path))
        assert list(found) == expected.keys()
        for name, value in found.items():
            np.testing.assert_array_equal(value, expected[name])


def test_every_entry_is_on_the_page(files):
    known = set(re.findall(r"`([\w.*<>]+)`", PAGE))
    patterns = [re.escape(name).replace(r"<i>", r"\d+").replace(r"\*", ".+") for name in known]
    patterns.append(r"(step|budget|tracking|newton\.step)\.parameters")
    for path in files:
        for name in _core.Archive.read(str(path)).keys():  # noqa: SIM118
            assert any(re.fullmatch(each, name) for each in patterns), name


def test_the_page_is_enough_to_predict(files):
    X = task()[0][:20]
    compared = 0
    for path in files:
        entries = entries_of(path.read_bytes())
        if entries["kernel"] != "gaussian(0.7)" or "output.mean" not in entries:
            continue
        squares = ((X[:, None] - entries["dictionary"][None]) ** 2).sum(axis=2)
        weights = entries["weights"]
        if "newton" in entries or entries.get("average") == 1:
            weights = weights[:, weights.shape[1] // 2 :]
        values = np.exp(-squares / (2 * 0.7**2)) @ weights
        values = values * entries.get("output.scale", 1.0) + entries["output.mean"]
        model = parsimon.load(path)
        expected = model.predict(X) if "labels.type" not in entries else model.decision_function(X)
        np.testing.assert_allclose(values, expected.reshape(len(X), -1), rtol=1e-9, atol=1e-12)
        compared += 1
    assert compared >= 3
