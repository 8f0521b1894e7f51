"""Thin estimators: few levels, few calls on a sample's way to the core, docstrings without gaps."""

import dataclasses
import inspect
import re
import sys
from pathlib import Path

import pytest
from polk_common import curve, task

import parsimon
from parsimon import (
    BSGDClassifier,
    BSGDRegressor,
    COLKClassifier,
    COLKRegressor,
    MarkedIntensity,
    PolicyEvaluator,
    POLKClassifier,
    POLKRegressor,
    SLKLRegressorCV,
    SPPPOTClassifier,
)
from parsimon.spppot._base import Intensity

PACKAGE = str(Path(parsimon.__file__).parent)
ESTIMATORS = [
    cls for cls in vars(parsimon).values() if inspect.isclass(cls) and hasattr(cls, "get_params")
]
every = pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)


# -- calls -----------------------------------------------------------------------------------------


def own_calls(function):
    """Return the functions of the package that are called, one after the other."""
    calls = []

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            calls.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_code.co_name}")

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


def block(cls, rows):
    X, y = task() if cls.__name__.endswith("Classifier") else curve()
    return X[rows], y[rows]


@pytest.mark.parametrize(
    "cls",
    [
        POLKClassifier,
        POLKRegressor,
        BSGDClassifier,
        BSGDRegressor,
        COLKClassifier,
        COLKRegressor,
        SPPPOTClassifier,
    ],
)
def test_a_sample_is_a_few_calls_away_from_the_core(cls):
    first = {"classes": range(5)} if hasattr(cls, "decision_function") else {}
    model = cls().partial_fit(*block(cls, slice(0, 100)), **first)
    calls = own_calls(lambda: model.partial_fit(*block(cls, slice(100, 101))))
    # With risk, the sample is weighed first: by its loss, beside those of the latest.
    weighs = cls in (COLKClassifier, COLKRegressor)
    assert len(calls) <= (34 if weighs else 14), calls
    assert len({call.split(":")[0] for call in calls}) <= (8 if weighs else 5), calls
    calls = own_calls(lambda: model.predict(block(cls, slice(0, 1))[0]))
    assert len(calls) <= 12, calls


def test_a_first_block_chooses_all_settings_in_about_a_hundred_calls():
    X, y = task()
    # One of the settings is how the weights are solved; some calls see whether samples are to be
    # kept, which labels are new, how much classes count, and whether samples are sparse, dates or
    # of so many features that the kernel is linear.
    calls = own_calls(lambda: POLKClassifier().partial_fit(X, y, classes=range(5)))
    assert len(calls) <= 150, calls
    # Six widths are compared.
    calls = own_calls(lambda: POLKRegressor().partial_fit(*curve()))
    assert len(calls) <= 172, calls


@pytest.mark.parametrize(("method", "most"), [("td", 32), ("gtd", 32), ("lstd", 64)])
def test_a_transition_is_a_few_calls_away_from_the_core(method, most):
    """Each has a discount and a ratio; with "lstd", the least squares are those of Python."""
    X, y = curve()
    model = PolicyEvaluator(method).partial_fit(X[:100], y[:100], X[1:101])
    calls = own_calls(lambda: model.partial_fit(X[:1], y[:1], X[1:2]))
    assert len(calls) <= most, calls


# -- classes ---------------------------------------------------------------------------------------


@every
def test_an_estimator_has_two_or_three_levels_of_its_own(cls):
    own = [base for base in cls.__mro__ if base.__module__.startswith("parsimon")]
    if issubclass(cls, Intensity):
        # How they learn and what they are asked fill a page each.
        assert len(own) == 4, own
    elif cls in (SLKLRegressorCV, MarkedIntensity):  # made of other estimators
        assert len(own) == 1, own
    else:
        assert 2 <= len(own) <= 3, own


@every
def test_a_constructor_keeps_what_it_is_given_and_nothing_else(cls):
    given = {name: object() for name in inspect.signature(cls).parameters}
    assert vars(cls(**given)) == given
    # Dask takes a dataclass to be its fields alone: a model would be the same before and after fit.
    assert not dataclasses.is_dataclass(cls)
    assert cls() != cls()


# -- docstrings ------------------------------------------------------------------------------------


def sections(doc):
    """Return the names of the entries in each section of a docstring in numpydoc's format."""
    parts = re.split(r"\n(\w[\w ]*)\n-+\n", inspect.cleandoc(doc))
    return {
        title: re.findall(r"(?m)^(\*{0,2}\w+(?:, \w+)*) ?:(.*)", body)
        for title, body in zip(parts[1::2], parts[2::2], strict=True)
    }


@every
def test_every_hyper_parameter_is_described_in_order_with_its_default(cls):
    described = sections(cls.__doc__)["Parameters"]
    parameters = inspect.signature(cls).parameters
    assert [name for name, _ in described] == list(parameters)
    for name, what in described:
        default = parameters[name].default
        shown = re.search(r"default=(.*)", what)
        if shown is None:
            assert default is None, name
            assert what.endswith((", optional", " callable")), name
        else:
            assert eval(shown[1]) == default, name


@every
def test_every_attribute_is_described(cls):
    described = {name for name, _ in sections(cls.__doc__)["Attributes"]}
    public = {name for name in dir(cls) if name.endswith("_") and not name.startswith("_")}
    if not hasattr(cls, "partial_fit"):
        public -= {"t_", "trace_"}
    assert public <= described
    assert all(name.endswith("_") for name in described)


@every
def test_every_method_describes_what_it_takes_and_returns(cls):
    for name, method in inspect.getmembers(cls, inspect.isfunction):
        own = method.__module__.startswith("parsimon") and not name.startswith("_")
        if not own or name == "save":
            continue
        found = sections(method.__doc__)
        taken = list(inspect.signature(method).parameters)[1:]
        assert [entry for entry, _ in found.get("Parameters", [])] == taken, name
        assert "Returns" in found, name


@every
def test_no_entry_is_left_to_be_filled_in(cls):
    docs = [cls.__doc__, *(member.__doc__ for _, member in inspect.getmembers(cls))]
    for doc in docs:
        assert not re.search(r"\{default\}|^\s*\{\w[\w, ]*(->.*)?\}$", doc or "", re.MULTILINE)


def test_names_that_are_not_known_are_noticed():
    from parsimon._docs import documented

    class Careless:
        """Have a parameter.

        {gama}
        """

    with pytest.raises(KeyError, match="gama"):
        documented()(Careless)


@every
def test_every_estimator_has_an_example(cls):
    assert "Examples" in sections(cls.__doc__)
    assert ">>> " in cls.__doc__
