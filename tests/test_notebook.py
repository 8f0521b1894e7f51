"""What a notebook shows: diagrams and functions that link to the site, reports of three lines."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from polk_common import task
from sklearn.base import BaseEstimator
from sklearn.svm import SVC

import parsimon
from parsimon import KernelExpansion, POLKClassifier, compression, kernels, komp, stream
from parsimon._site import DOCUMENTATION, page_of

ROOT = Path(__file__).resolve().parent.parent
ESTIMATORS = [
    cls
    for module in (parsimon, compression, stream)
    for cls in vars(module).values()
    if inspect.isclass(cls) and issubclass(cls, BaseEstimator)
]
KERNELS = [getattr(kernels, name) for name in kernels.__all__ if name[0].isupper()]


def pages():
    """Return the names of all pages of the API reference."""
    listed = (ROOT / "docs" / "api.rst").read_text()
    return {f"parsimon.{name}" for name in re.findall(r"(?m)^   ([\w.]+)$", listed)}


def links(html):
    return re.findall(r'href="([^"]*)"', html)


def test_the_address_of_the_site_is_the_same_everywhere():
    urls = (ROOT / "pyproject.toml").read_text().partition("[project.urls]")[2]
    assert re.search(r'(?m)^Documentation = "(.*)"$', urls)[1] == DOCUMENTATION


@pytest.mark.parametrize("cls", ESTIMATORS, ids=page_of)
def test_the_diagram_of_an_estimator_links_to_its_page(cls):
    assert page_of(cls) in pages()
    needed = {"estimator": POLKClassifier()} if cls is stream.StreamingPipeline else {}
    address = f"{DOCUMENTATION}/api/{page_of(cls)}.html"
    assert any(link.startswith(address) for link in links(cls(**needed)._repr_html_()))


def test_those_for_dask_have_pages_of_their_own():
    pytest.importorskip("distributed", reason="Dask is not installed.")
    from parsimon import dask

    assert page_of(dask.POLKClassifier) == "parsimon.dask.POLKClassifier" in pages()


def test_a_class_of_somebody_else_links_nowhere():
    class Mine(POLKClassifier):
        pass

    assert DOCUMENTATION not in Mine()._repr_html_()


@pytest.mark.parametrize("cls", [cls for cls in KERNELS if cls is not kernels.Kernel])
def test_a_kernel_has_a_page(cls):
    assert page_of(cls) in pages()


def test_a_kernel_is_shown_with_links_to_its_parts():
    kernel = 2.0 * (kernels.Gaussian(0.5) + kernels.Linear()) * kernels.Gaussian(3.0)
    html = kernel._repr_html_()
    assert re.sub(r"<[^>]*>", "", html) == repr(kernel)
    names = [link.rpartition("/")[2] for link in links(html)]
    gaussian, linear = "parsimon.kernels.Gaussian.html", "parsimon.kernels.Linear.html"
    assert names == [gaussian, linear, gaussian]


def test_the_name_of_a_function_is_no_markup():
    def function(a, b):
        return a @ b.T

    function.__name__ = function.__qualname__ = "<script>"
    html = kernels.Function(function)._repr_html_()
    assert "<script>" not in html
    assert "script" in html


def test_a_function_is_shown_in_a_line():
    f = KernelExpansion(kernels.Gaussian(1.0), np.zeros((1, 2)), np.ones((1, 3)))
    html = f._repr_html_()
    text = "KernelExpansion: 1 point with 2 features, 3 outputs, kernel Gaussian(bandwidth=1.0)"
    assert re.sub(r"<[^>]*>", "", html) == text
    assert f"{DOCUMENTATION}/api/parsimon.KernelExpansion.html" in links(html)


def test_a_report_is_three_lines():
    X, y = task()
    model = POLKClassifier(random_state=0).fit(X, y)
    reports = [
        komp(model.expansion_, max_points=5)[1],
        parsimon.compress(model, max_points=5)[1],
        parsimon.compress(model, max_points=5, X=X, y=y)[1],
        parsimon.compress(SVC().fit(X, y), max_points=20, X=X)[1],
    ]
    for report in reports:
        assert repr(report) == str(report)
        size, certified, _ = str(report).splitlines()
        assert re.match(r"\d+ -> \d+ points", size)
        assert "certified" in certified or "moved by" in certified
