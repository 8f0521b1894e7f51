"""Where the site is, and how what a notebook shows leads to it."""

from __future__ import annotations

import sys
from html import escape
from itertools import takewhile
from typing import Any, TypeVar

# The test of links compares it with `project.urls` in pyproject.toml.
DOCUMENTATION = "https://parsimon.readthedocs.io"

Class = TypeVar("Class", bound=type)


def linked(cls: Class) -> Class:
    """Have scikit-learn's diagram of an estimator link to its page of the API reference."""
    made: Any = cls
    made._doc_link_module = "parsimon"
    made._doc_link_template = f"{DOCUMENTATION}/api/{{page}}.html"
    made._doc_link_url_param_generator = lambda estimator: {"page": page_of(type(estimator))}
    return cls


def page_of(cls: type) -> str:
    """Return the public name of a class, which is that of its page."""
    package = sys.modules[__package__]
    if getattr(package, cls.__name__, None) is cls:
        return f"{package.__name__}.{cls.__name__}"
    public = takewhile(lambda part: not part.startswith("_"), cls.__module__.split("."))
    return ".".join([*public, cls.__name__])


def link_to(cls: type) -> str:
    """Return the name of a class of ours as a link to its page."""
    name = escape(cls.__name__)
    if cls.__module__.split(".")[0] != __package__:
        return name
    address = f"{DOCUMENTATION}/api/{page_of(cls)}.html"
    return f'<a href="{address}" rel="noreferrer" target="_blank">{name}</a>'


def counted(number: int, what: str) -> str:
    """Return a number and what it counts, in the singular or the plural."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
