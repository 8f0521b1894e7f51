"""parsimon imports what pyproject.toml declares, and nothing optional before it is needed."""

import ast
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import declared
import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "python" / "parsimon"
FILES = sorted(PACKAGE.rglob("*.py"))
DISTRIBUTIONS = packages_distributions()
REQUIRED = {requirement.name for requirement in declared.REQUIRED}
OPTIONAL = {requirement.name for requirement in declared.OPTIONAL}

# Code inside these runs later than the import of its module, or may fail.
GUARDS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Try)


def imports(node, *, guarded=False):
    """Yield the names of all distributions that a syntax tree imports, and whether guarded."""
    names = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.level == 0:
        names = [node.module]
    for name in names:
        top = name.split(".")[0]
        if top not in sys.stdlib_module_names and top != "parsimon":
            yield from ((found, guarded) for found in DISTRIBUTIONS.get(top, [top]))
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue  # of the type checker, which brings what it needs
        yield from imports(child, guarded=guarded or isinstance(node, GUARDS))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(PACKAGE).as_posix())
def test_imports_are_declared(file):
    for name, guarded in imports(ast.parse(file.read_text(encoding="utf-8"))):
        assert name in REQUIRED | (OPTIONAL if guarded else set()), (
            f"{file.name} imports {name}, which is no dependency in pyproject.toml"
            + (" and no part of its extras." if guarded else ".")
        )


def test_what_is_declared_is_imported():
    found = {
        name for file in FILES for name, _ in imports(ast.parse(file.read_text(encoding="utf-8")))
    }
    assert found == REQUIRED | OPTIONAL


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import numpy.linalg as la, os", [("numpy", False)]),
        ("from sklearn.base import clone", [("scikit-learn", False)]),
        ("from . import kernels", []),
        ("def f():\n    import tqdm", [("tqdm", True)]),
        ("try:\n    import tqdm\nexcept ImportError:\n    pass", [("tqdm", True)]),
        ("class A:\n    import nobody", [("nobody", False)]),
    ],
)
def test_imports_are_found(code, expected):
    assert list(imports(ast.parse(code))) == expected


def test_every_dependency_has_a_lower_bound():
    for requirement in declared.REQUIRED + declared.OPTIONAL:
        assert [bound.operator for bound in requirement.specifier] == [">="], requirement
