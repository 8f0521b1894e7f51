"""The model file as Python sees it; cpp/tests/test_archive.cpp has the fuzzing."""

import re
import struct

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from parsimon import _core

ENTRIES = {
    "kind": "POLKClassifier",
    "label": "naïve €",
    "count": -42,
    "step": 0.1,
    "ids": np.array([1, -2, 3]),
    "norms": np.array([0.5, np.nan, -np.inf, -0.0]),
    "weights": np.arange(6.0).reshape(2, 3),
    "table": np.arange(6).reshape(3, 2),
    "empty": np.zeros((0, 7)),
}


def assert_same(actual, expected):
    assert list(actual) == sorted(expected)
    for name, value in expected.items():
        assert type(actual[name]) is type(value)
        if isinstance(value, np.ndarray):
            assert actual[name].dtype == value.dtype
            assert actual[name].shape == value.shape
            assert_array_equal(actual[name], value)
        else:
            assert actual[name] == value


def test_everything_comes_back_as_it_was(tmp_path):
    path = tmp_path / "modèle"
    _core.Archive(ENTRIES).write(path)
    assert_same(dict(_core.Archive.read(path)), ENTRIES)
    assert_same(dict(_core.Archive.read(str(path))), ENTRIES)
    assert_same(dict(_core.Archive.from_bytes(_core.Archive(ENTRIES).to_bytes())), ENTRIES)
    assert path.read_bytes() == _core.Archive(ENTRIES).to_bytes()
    assert list(tmp_path.iterdir()) == [path]


def test_other_spellings_are_stored_as_the_nearest_type():
    given = {
        "flag": True,
        "zero_d": np.array(3.0),
        "scalar": np.int32(7),
        "list": [1, 2],
        "single": np.array([0.5], dtype=np.float32),
        "mask": np.array([True, False]),
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "strided": np.arange(10.0)[::3],
    }
    expected = {
        "flag": 1,
        "zero_d": 3.0,
        "scalar": 7,
        "list": np.array([1, 2]),
        "single": np.array([0.5]),
        "mask": np.array([1, 0]),
        "fortran": np.arange(6.0).reshape(2, 3),
        "strided": np.array([0.0, 3.0, 6.0, 9.0]),
    }
    assert_same(dict(_core.Archive.from_bytes(_core.Archive(given).to_bytes())), expected)


def test_equal_content_gives_equal_bytes():
    backwards = dict(reversed(ENTRIES.items()))
    assert _core.Archive(backwards).to_bytes() == _core.Archive(ENTRIES).to_bytes()


# The format is a promise: a file written by format 1 stays readable.
def test_golden_bytes():
    golden = bytes.fromhex(
        "895052534d0d0a1a"
        "01000000"
        "02000000"
        "4000000000000000"
        "492d293eb0958e6d"
        "01000000"
        "61"
        "03"
        "00"
        "0500000000000000"
        "01000000"
        "74"
        "01"
        "01"
        "0200000000000000"
        "6f6b"
    )
    assert _core.Archive({"t": "ok", "a": 5}).to_bytes() == golden
    assert_same(dict(_core.Archive.from_bytes(golden)), {"a": 5, "t": "ok"})


@pytest.mark.parametrize(
    "value", [None, object(), b"bytes", 1 << 70, 1j, [[1], [1, 2]], {"a": 1}, "\ud800"]
)
def test_values_that_do_not_fit(value):
    with pytest.raises((TypeError, ValueError)):
        _core.Archive({"x": value})


def test_messages_about_values():
    with pytest.raises(
        TypeError, match=r'value of "x" is of type .*NoneType.*holds str, and numbers'
    ):
        _core.Archive({"x": None})
    with pytest.raises(ValueError, match='"x" has 3 dimensions'):
        _core.Archive({"x": np.zeros((1, 1, 1))})
    with pytest.raises(TypeError, match="named by str"):
        _core.Archive({1: 1})
    with pytest.raises(ValueError, match="1 to 255 bytes"):
        _core.Archive({"": 1})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda good: b"", "is empty"),
        (lambda good: b"PK\x03\x04 a zip file", "not a parsimon model"),
        (lambda good: np.random.default_rng(0).bytes(500), "not a parsimon model"),
        (lambda good: good[:20], "within its header"),
        (lambda good: good[:-1], "the copy is incomplete"),
        (lambda good: good + b"x", "something was appended"),
        (lambda good: good[:50] + bytes([good[50] ^ 1]) + good[51:], "checksum does not match"),
        (
            lambda good: good[:8] + struct.pack("<I", 3) + good[12:],
            r"newer parsimon \(format 3; this one reads up to 1\): upgrade parsimon",
        ),
    ],
)
def test_damaged_files(tmp_path, damage, message):
    path = tmp_path / "model"
    path.write_bytes(damage(_core.Archive(ENTRIES).to_bytes()))
    with pytest.raises(ValueError, match=message) as error:
        _core.Archive.read(path)
    assert str(path) in str(error.value)
    with pytest.raises(ValueError, match=message):
        _core.Archive.from_bytes(path.read_bytes())


def test_files_that_cannot_be_used(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        _core.Archive.read(tmp_path / "missing")
    assert error.value.filename == str(tmp_path / "missing")
    with pytest.raises(OSError, match=re.escape(str(tmp_path))):
        _core.Archive.read(tmp_path)
    with pytest.raises(FileNotFoundError) as error:
        _core.Archive(ENTRIES).write(tmp_path / "missing" / "model")
    assert error.value.filename == str(tmp_path / "missing" / "model")
    with pytest.raises(OSError, match=re.escape(str(tmp_path))):
        _core.Archive(ENTRIES).write(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_keeps_the_old_file(tmp_path):
    path = tmp_path / "model"
    _core.Archive({"x": 1}).write(path)
    with pytest.raises(TypeError):
        _core.Archive({"x": None}).write(path)
    assert dict(_core.Archive.read(path)) == {"x": 1}
