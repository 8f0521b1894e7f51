"""The stub of the compiled core says what is there: every name, every method, every parameter."""

import ast
import types
from pathlib import Path

import pytest

import parsimon
from parsimon import _core

STUB = {
    node.name: node
    for node in ast.parse((Path(parsimon.__file__).parent / "_core.pyi").read_text()).body
    if isinstance(node, (ast.ClassDef, ast.FunctionDef))
}
PUBLIC = {
    name: value
    for name, value in vars(_core).items()
    if not name.startswith("_") and not isinstance(value, types.ModuleType)
}
CLASSES = [name for name, value in PUBLIC.items() if isinstance(value, type)]
FUNCTIONS = [name for name, value in PUBLIC.items() if callable(value) and name not in CLASSES]


def stated(function):
    """Return the parameters of a function in the stub."""
    arguments = function.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return [name for name in names if name != "self"]


def members(name):
    """Return what the stub says of a class, that of its bases included."""
    found = {}
    for base in STUB[name].bases:
        if base.id in STUB:
            found |= members(base.id)
    return found | {f.name: f for f in STUB[name].body if isinstance(f, ast.FunctionDef)}


def signatures(function):
    """Return the parameters of each overload, which pybind11 lists in the docstring."""
    lines = function.__doc__.splitlines()
    overloads = [line.split(". ", 1)[1] for line in lines if line[:1].isdigit() and ". " in line]
    for line in overloads or lines[:1]:
        names, depth, start = [], 0, line.index("(") + 1
        for i in range(start - 1, len(line)):
            depth += (line[i] in "([{") - (line[i] in ")]}")
            if depth == 0 or (depth == 1 and line[i] == ","):
                names.append(line[start:i].split(":")[0].split("=")[0].strip())
                start = i + 1
            if depth == 0:
                break
        yield [name for name in names if name not in ("", "*", "/", "self")]


def test_every_name_is_in_the_stub():
    assert {name for name in STUB if not name.startswith("_")} == {*CLASSES, *FUNCTIONS}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    for found in signatures(PUBLIC[name]):
        assert stated(STUB[name]) == found


@pytest.mark.parametrize("name", CLASSES)
def test_classes(name):
    told, cls = members(name), PUBLIC[name]
    public = {member for member in vars(cls) if not member.startswith("_")}
    assert {member for member in told if not member.startswith("_")} == public
    for member, function in told.items():
        value = getattr(cls, member)
        is_property = any(getattr(d, "id", "") == "property" for d in function.decorator_list)
        assert is_property == isinstance(value, property), member
        if not is_property:
            assert all(stated(function) == found for found in signatures(value)), member
