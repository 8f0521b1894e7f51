"""Ways to keep a model, and that learning goes on from there."""

import copy
import pickle

import pytest
from numpy.testing import assert_array_equal
from polk_common import state

import parsimon
from parsimon import _core


def through_file(model, tmp_path):
    model.save(tmp_path / "model.parsimon")
    return parsimon.load(tmp_path / "model.parsimon")


def load(entries):
    """Load from memory: writing thousands of files safely takes longer than all the rest."""
    archive = _core.Archive.from_bytes(_core.Archive(entries).to_bytes())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_core.Archive, "read", staticmethod(lambda _: archive))
        return parsimon.load("made up")


WAYS = {
    "file": through_file,
    "pickle": lambda model, _: pickle.loads(pickle.dumps(model)),
    "oldest pickle": lambda model, _: pickle.loads(pickle.dumps(model, protocol=2)),
    "deepcopy": lambda model, _: copy.deepcopy(model),
}


def assert_learning_goes_on(model, way, tmp_path, blocks, parts, predict="predict"):
    """Learn from parts of the blocks with a model, and with one that is kept before each of them.

    Returns the other one.
    """
    other = WAYS[way](model, tmp_path)
    assert type(other) is type(model)
    for part in parts:
        assert state(other) == state(model)
        predictions = (getattr(each, predict)(blocks[0]) for each in (other, model))
        assert_array_equal(*predictions)
        for column in model.trace_:
            assert_array_equal(other.trace_[column], model.trace_[column])
        for each in (model, other):
            each.partial_fit(*(block[part] for block in blocks))
        other = WAYS[way](other, tmp_path)
    assert state(other) == state(model)
    return other
