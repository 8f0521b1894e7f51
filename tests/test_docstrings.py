"""The examples in the docstrings run and print what they say, and nothing is left undescribed."""

import dataclasses
import doctest
import importlib
import inspect
import pkgutil
import re

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


# -- names -----------------------------------------------------------------------------------------

PUBLIC = {
    "parsimon": None,
    "parsimon.compression": None,
    "parsimon.dask": "distributed",
    "parsimon.datasets": None,
    "parsimon.distributed": None,
    "parsimon.explain": None,
    "parsimon.export": None,
    "parsimon.goodness_of_fit": None,
    "parsimon.kernels": None,
    "parsimon.metrics": None,
    "parsimon.plotting": None,
    "parsimon.river": "river",
    "parsimon.schedules": None,
    "parsimon.stream": None,
}


def public(module):
    """Yield what a module offers, and the methods of its classes that are ours."""
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isclass(thing) and thing.__module__ != "parsimon._core":  # the core's exception
            yield name, thing
            for method in dir(thing):
                value = inspect.getattr_static(thing, method)
                value = getattr(value, "fn", getattr(value, "__func__", value))
                ours = inspect.isfunction(value) and value.__module__.startswith("parsimon")
                if ours and (method == "__call__" or not method.startswith("_")):
                    yield f"{name}.{method}", value
        elif inspect.isroutine(thing):
            yield name, thing


def described(thing, section):
    """Return the names in a section of a docstring, in order."""
    parts = re.split(r"\n(\w[\w ]*)\n-+\n", inspect.cleandoc(thing.__doc__))
    body = dict(zip(parts[1::2], parts[2::2], strict=True)).get(section, "")
    heads = re.findall(r"(?m)^((?:\*{0,2}\w+(?:, )?)+)(?: :.*)?$", body)
    return [name.lstrip("*") for head in heads for name in head.split(", ")]


def names_of(thing):
    """Return what the docstring must describe: fields of results, otherwise parameters."""
    if dataclasses.is_dataclass(thing) and "Parameters" not in inspect.cleandoc(thing.__doc__):
        fields = (field.name for field in dataclasses.fields(thing))
        return "Attributes", [name for name in fields if not name.startswith("_")]
    parameters = list(inspect.signature(thing).parameters)
    return "Parameters", [name for name in parameters if name not in ("self", "cls")]


@pytest.mark.parametrize("module", PUBLIC)
def test_what_is_described_is_what_there_is(module):
    if PUBLIC[module] is not None:
        pytest.importorskip(PUBLIC[module], reason=f"{PUBLIC[module]} is not installed.")
    undescribed = {}
    for name, thing in public(importlib.import_module(module)):
        section, names = names_of(thing)
        found = described(thing, section)
        if found[: len(names)] != names or (section == "Parameters" and found != names):
            undescribed[name] = (names, found)
    assert undescribed == {}


def test_every_public_module_is_looked_at():
    """So that what is new is looked at, too."""
    found = {
        f"parsimon.{name}"
        for name, module in vars(parsimon).items()
        if inspect.ismodule(module) and name in parsimon.__all__
    }
    assert found < set(PUBLIC)
