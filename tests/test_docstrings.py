"""The examples in the docstrings run and print what they say."""

import doctest
import importlib
import pkgutil

import pytest

import parsimon

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(parsimon.__path__, "parsimon.")
    if not module.name.startswith(
        ("parsimon._engine", "parsimon._simd_", "parsimon._cpu", "parsimon.__main__")
    )
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, tmp_path, monkeypatch):
    if name == "parsimon.river":
        pytest.importorskip("river")
    if name.startswith("parsimon.dask"):
        pytest.importorskip("distributed")
    monkeypatch.chdir(tmp_path)
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    count = sum(
        len(test.examples)
        for name in MODULES
        if not name.startswith(("parsimon.dask", "parsimon.river"))  # which need not be installed
        for test in finder.find(importlib.import_module(name))
    )
    assert count > 50
