"""What a type checker knows: words, keywords, attributes, and what was loaded."""

import inspect
import os
import re
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import parsimon
from parsimon import BSGDClassifier, KernelExpansion, POLKClassifier, POLKRegressor

ROOT = Path(__file__).resolve().parent.parent
ESTIMATORS = {
    name: cls
    for name, cls in vars(parsimon).items()
    if inspect.isclass(cls) and hasattr(cls, "get_params")
}

RIGHT = """\
parsimon.POLKClassifier("logistic", kernel="rbf", gamma=0.5, class_weight={"spam": 5.0})
parsimon.POLKClassifier(class_weight="balanced", schedule=PowerLaw(0.75), n_jobs=-1)
parsimon.POLKClassifier(half_life=Detector(), learning_rate=0.1, max_points=None, epochs=3)
parsimon.POLKClassifier(refine=("points",), kernel=kernels.Gaussian([0.5, 2.0]) + kernels.Linear())
parsimon.POLKRegressor("huber(0.2)", budget=AdaptiveBudget(100), solver="sgd", dtype="float32")
parsimon.POLKOneClass(0.05, regularization=0.1)
parsimon.BSGDRegressor(maintenance="nonparametric", refine=True)
parsimon.COLKRegressor("cvar", level=0.95, risk_weight=0.5, tracking_schedule="sqrt")
parsimon.COLKClassifier(None, compression="merge")
parsimon.PolicyEvaluator("gtd", tracking_rate="auto")
parsimon.QLearner(3, "sarsa", memory=500)
parsimon.CompositionalLearner(abs, abs, abs, n_inner=2, half_life=None)
parsimon.SLKLRegressor(kernel="precomputed", columns=[1, 2, 3], store_columns=True)
parsimon.SLKLClassifier(columns=np.arange(3), sparsity=1e-4, selection="uniform")
parsimon.SLKLRegressorCV(parsimon.SLKLRegressor(), rule="one_standard_error")
parsimon.SPPPOTIntensity(domain=[(0, 1), (0, 2)], bandwidth=[0.1, 0.2], scales=2, mirror="kl")
parsimon.MirrorNewtonIntensity(kernel="student_t", damping=0.1, grid_size=(4, 5))
parsimon.HybridIntensity(patience=3, newton_learning_rate="auto")
parsimon.SPPPOTClassifier(max_points=100)
dask.POLKClassifier(client=None, loss="hinge", refine=True)
distance: float = parsimon.POLKRegressor().fit(X, y).compress(max_points=3)
accuracy: float = parsimon.POLKClassifier().fit(X, y).partial_fit(X, y).score(X, y)
loaded: parsimon.POLKRegressor = parsimon.load("model", kind=parsimon.POLKRegressor)
parsimon.load("model", kind=parsimon.KernelExpansion)(X)
parsimon.load("model").save("copy")
"""

OPTIONS = (
    "--config-file=",
    "--strict",
    "--no-error-summary",
    "--ignore-missing-imports",
    "--follow-imports=silent",
    "--cache-dir=cache",
)

# What is wrong, and what is said about it.
WRONG = {
    'parsimon.POLKClassifier("hing")': "\"Literal['hing']\"",
    'parsimon.POLKClassifier(loss="hing")': "\"Literal['hing']\"",
    'parsimon.POLKClassifier(loss="squared")': "incompatible type",
    "parsimon.POLKClassifier(nonsense=3)": 'Unexpected keyword argument "nonsense"',
    'parsimon.POLKClassifier("hinge", "rbf")': "Too many positional arguments",
    'parsimon.POLKClassifier(solver="adam")': "incompatible type",
    'parsimon.POLKClassifier(kernel="rbff")': "incompatible type",
    'parsimon.POLKClassifier(class_weight="even")': "incompatible type",
    "parsimon.POLKRegressor(normalise_y=True)": 'did you mean "normalize_y"?',
    'parsimon.POLKRegressor(dtype="float16")': "incompatible type",
    'parsimon.POLKRegressor(epochs="many")': "incompatible type",
    'parsimon.POLKRegressor(schedule="linear")': "incompatible type",
    'parsimon.POLKRegressor(learning_rate="fast")': "incompatible type",
    "parsimon.POLKRegressor(max_points=0.5)": "incompatible type",
    'parsimon.POLKOneClass(solver="sgd")': 'Unexpected keyword argument "solver"',
    'parsimon.BSGDClassifier(maintenance="drop")': "incompatible type",
    "parsimon.BSGDClassifier(budget=100)": 'Unexpected keyword argument "budget"',
    'parsimon.COLKRegressor("variance")': "incompatible type",
    'parsimon.PolicyEvaluator("sarsa")': "incompatible type",
    'parsimon.QLearner(2, "td")': "incompatible type",
    'parsimon.SLKLRegressor(step="large")': "incompatible type",
    'parsimon.SLKLClassifier(columns="first")': "incompatible type",
    'parsimon.SLKLRegressorCV(rule="worst")': "incompatible type",
    'parsimon.SPPPOTIntensity(mirror="log")': "incompatible type",
    'parsimon.SPPPOTIntensity(kernel="linear")': "incompatible type",
    "parsimon.SPPPOTIntensity(scales=3)": "incompatible type",
    'parsimon.MirrorNewtonIntensity(method="mirror_descent")': "Unexpected keyword argument",
    "dask.POLKClassifier(nonsense=3)": 'Unexpected keyword argument "nonsense"',
    'dask.POLKRegressor(solver="adam")': "incompatible type",
    "parsimon.POLKRegressor().dictionnary_": 'has no attribute "dictionnary_"',
    "parsimon.POLKRegressor().fit(X, y, weights=y)": 'Unexpected keyword argument "weights"',
    'parsimon.load("model").predict(X)': 'has no attribute "predict"',
    'one: parsimon.POLKClassifier = parsimon.load("m", kind=parsimon.POLKRegressor)': "assignment",
    'parsimon.load("model", kind="POLKRegressor")': "No overload variant",
}

HEAD = """\
import numpy as np
import parsimon
from parsimon import dask, kernels
from parsimon.schedules import AdaptiveBudget, PowerLaw

class Detector:
    drift_detected = False

    def update(self, loss: float) -> None: ...

X, y = np.zeros((9, 2)), np.zeros(9)
"""


def attributes(cls):
    """Return the names under which a docstring says what a fitted estimator has."""
    section = inspect.cleandoc(cls.__doc__).partition("\nAttributes\n")[2]
    return re.findall(r"(?m)^(\w+_) :", section)


@pytest.fixture(scope="module")
def complaints(tmp_path_factory):
    """Let mypy read all of it at once, and return what it says about each line."""
    pytest.importorskip("mypy", reason="mypy is not installed (pip install 'parsimon[dev]').")
    fitted = [
        f"parsimon.{name}().{attribute}"
        for name, cls in ESTIMATORS.items()
        for attribute in attributes(cls)
    ]
    lines = [*HEAD.splitlines(), *RIGHT.splitlines(), *WRONG, *fitted]
    folder = tmp_path_factory.mktemp("typing")
    (folder / "snippets.py").write_text("\n".join(lines) + "\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *OPTIONS, "snippets.py"],
        env={**os.environ, "MYPYPATH": str(ROOT / "python")},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    said = {}
    for number, sentence in re.findall(
        r"(?m)^snippets\.py:(\d+): (?:error|note): (.*)", done.stdout
    ):
        said.setdefault(lines[int(number) - 1], []).append(sentence)
    assert said, done.stdout + done.stderr
    return said


@pytest.mark.parametrize("line", RIGHT.splitlines())
def test_what_is_right_passes(line, complaints):
    assert complaints.get(line) is None


@pytest.mark.parametrize("line", WRONG)
def test_what_is_wrong_is_noticed(line, complaints):
    assert line in complaints
    assert any(WRONG[line] in sentence for sentence in complaints[line]), complaints[line]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_attribute_of_the_docstring_is_known(name, complaints):
    said = {
        line: what for line, what in complaints.items() if line.startswith(f"parsimon.{name}().")
    }
    assert {line: what for line, what in said.items() if line not in WRONG} == {}


# -- the words of the types are those of the tables ------------------------------------------------


def words_of(annotation):
    """Return the text that a type allows."""
    if typing.get_origin(annotation) is typing.Literal:
        return {word for word in typing.get_args(annotation) if isinstance(word, str)}
    return {word for part in typing.get_args(annotation) for word in words_of(part)}


def words_with_types():
    for name, cls in ESTIMATORS.items():
        if not hasattr(cls, "_words"):  # it is made of another estimator
            continue
        hints = typing.get_type_hints(cls)
        for parameter in inspect.signature(cls).parameters:
            if words_of(hints[parameter]):
                yield name, parameter, words_of(hints[parameter])


@pytest.mark.parametrize(("name", "parameter", "words"), list(words_with_types()))
def test_types_and_tables_have_the_same_words(name, parameter, words):
    check = ESTIMATORS[name]._words[parameter]
    for word in words:
        check(parameter, (word,) if parameter == "refine" else word)
    with pytest.raises(ValueError, match=re.escape("'?'")) as refused:
        check(parameter, "?")
    known = set(re.findall(r"'([\w+]+)'", str(refused.value)))
    assert known <= words


def test_no_word_is_plain_text():
    for name, cls in ESTIMATORS.items():
        hints = typing.get_type_hints(cls)
        texts = [
            parameter
            for parameter in inspect.signature(cls).parameters
            if parameter in hints and str in (hints[parameter], *typing.get_args(hints[parameter]))
        ]
        # The losses of regressors have parameters of their own: "huber(0.2)".
        assert texts in ([], ["loss"]), name
        assert not texts or name.endswith("Regressor")


# -- load ------------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path):
    X = [[0.0], [1.0], [2.0], [3.0]]
    POLKRegressor(epochs=1).fit(X, [0.0, 1.0, 2.0, 3.0]).save(tmp_path / "model")
    return tmp_path / "model"


def test_load_takes_the_kind_that_is_expected(file):
    assert type(parsimon.load(file, kind=POLKRegressor)) is POLKRegressor
    assert type(parsimon.load(file, kind=object)) is POLKRegressor


@pytest.mark.parametrize("kind", [POLKClassifier, BSGDClassifier, KernelExpansion])
def test_load_refuses_another_kind(file, kind):
    sentence = f"holds a POLKRegressor, not a {kind.__name__}: load it with kind=POLKRegressor"
    with pytest.raises(TypeError, match=sentence):
        parsimon.load(file, kind=kind)


def test_load_refuses_a_kind_that_is_no_class(file):
    with pytest.raises(TypeError, match="kind must be a class, such as"):
        parsimon.load(file, kind="POLKRegressor")
