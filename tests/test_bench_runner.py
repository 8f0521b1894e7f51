"""What all experiments share: settings, kept results, divergence, warnings, tables."""

import json
import warnings
from argparse import Namespace
from dataclasses import replace

import numpy as np
import pytest

import parsimon
from bench import report
from bench.baselines.peers import Libsvm
from bench.papers.classification import comparison, method
from bench.papers.classification import table as table_of
from bench.runner import Like, Method, Run, Store

# Two methods on little of multidist.
LIBSVM = method("LIBSVM", Libsvm, "hinge", None, 4.0, 100)
POLK = method("POLK", "POLKClassifier", "hinge", parsimony=0.04)
SMALL = replace(
    comparison("multidist", "Table 0", (LIBSVM, POLK), runs=3, quick={}),
    data={"samples": 100, "test_samples": 50},
)


def table(rows):
    return table_of("Title", rows)


def options(out, runs=None):
    return Namespace(out=out, runs=runs, quick=False)


def test_an_estimator_takes_what_it_knows_of_what_is_offered():
    def make(bandwidth, loss="hinge", *, random_state, epochs=1):
        return bandwidth, loss, random_state, epochs

    offered = {"bandwidth": 0.5, "C": 3.0, "epochs": 7, "random_state": 9}
    one = Method("name", make, {"epochs": 2})
    assert Run(one, None, 4, offered).make() == (0.5, "hinge", 4, 2)
    other = replace(one, loss="logistic", settings={})
    assert Run(other, None, 4, offered).make(random_state=5) == (0.5, "logistic", 5, 7)


def test_a_setting_may_be_like_a_figure_of_another_method():
    settings = {"like": Like("POLK", "seen", 4), "other": Like("diverging", "seen", 4)}
    methods = (POLK, replace(POLK, name="diverging"), replace(POLK, name="like", settings=settings))

    def train(run):
        if run.method.name == "diverging":
            raise parsimon.DivergenceError("Too large a step.")
        return {"seen": 1.9 + run.seed, **run.method.settings}

    _, _, row = replace(SMALL, methods=methods, train=train).rows()
    assert row.values("like") == [8, 12, 16]
    assert row.values("other") == [4, 4, 4]


def test_the_quick_version_has_fewer_of_everything():
    polk = replace(POLK, epochs=5, settings={"iterations": 300, "epochs": 1})
    quick = replace(SMALL, methods=[polk], quick={"samples": 30}).shortened
    (short,) = quick.methods
    assert (short.epochs, short.settings) == (2, {"iterations": 50, "epochs": 1})
    assert (quick.runs, quick.data) == (1, {"samples": 30, "test_samples": 50})


def test_what_was_interrupted_goes_on_where_it_stopped_and_nothing_is_run_twice(tmp_path):
    trained = []

    def train(run):
        if len(trained) == 4:
            raise KeyboardInterrupt
        trained.append((run.method.name, run.seed))
        return SMALL.train(run)

    interrupted = replace(SMALL, train=train)
    with pytest.raises(KeyboardInterrupt):
        interrupted.rows(options(tmp_path))
    trained.clear()
    first = interrupted.rows(options(tmp_path))
    assert trained == [("LIBSVM", 2), ("POLK", 2)]
    unused = replace(SMALL, train=lambda _: pytest.fail("trained again"))
    for one, other in zip(first, unused.rows(options(tmp_path)), strict=True):
        assert all(result.kept for result in other.results)
        for figure in ("error", "risk", "model_order", "seconds"):
            assert one.values(figure) == other.values(figure)
    assert len(set(first[0].values("model_order"))) == 3  # other seeds are other draws
    assert len(list((tmp_path / "runs").glob("*.json"))) == 6
    (path,) = (tmp_path / "runs").glob("*polk-0-*.json")
    content = json.loads(path.read_text())
    assert content["configuration"]["settings"] == {"parsimony": 0.04}
    assert content["configuration"]["parsimon"] == parsimon.__version__
    assert content["versions"]["numpy"] == np.__version__
    assert len(content["result"]["figures"]["path"]["error"]) > 1


def test_a_run_is_known_by_all_that_it_depends_on(monkeypatch, tmp_path):
    def name(experiment=SMALL, seed=0, **settings):
        changed = replace(POLK, settings={**POLK.settings, **settings})
        return Store(tmp_path).path(experiment.configuration(changed, seed)).name

    assert name().startswith("multidist-polk-0-")
    assert name() == name()
    names = {
        name(),
        name(seed=1),
        name(replace(SMALL, data={"samples": 6})),
        name(replace(SMALL, offered={})),
        name(parsimony=2.0),
        name(kernel=parsimon.kernels.Gaussian(1.0)),
        name(kernel=parsimon.kernels.Gaussian(2.0)),
    }
    monkeypatch.setattr(parsimon, "__version__", "99")
    assert len({*names, name()}) == 8


def test_a_row_that_is_run_once_is_compared_with_by_all_seeds():
    best, row = replace(SMALL, methods=(replace(LIBSVM, runs=1), POLK)).rows()
    assert (len(best.results), len(row.results)) == (1, 3)
    expected = row.mean("error") - best.mean("error")
    assert table([best, row]).lines[1][4].split()[0] == report.significant(expected, 2)


@pytest.mark.parametrize(("lost", "word"), [(3, "diverges"), (1, ", diverges 1 of 3")])
def test_what_diverges_and_what_warns_is_said(lost, word, capsys):
    def train(run):
        warnings.warn("The target cannot be held.", UserWarning, stacklevel=2)
        if run.method.name == "POLK" and run.seed < lost:
            raise parsimon.DivergenceError("Too large a step.")
        return SMALL.train(run)

    found = table(replace(SMALL, train=train).rows())
    assert found.lines[1][2].endswith(word)
    assert found.lines[0][3].endswith("[4]")
    found.show()
    assert capsys.readouterr().out.count("UserWarning: The target cannot be held.") == 1


def test_numbers_are_written_with_what_they_vary_by():
    assert report.mean_and_sd([0.12345]) == "0.123"
    assert report.mean_and_sd([1.0, 3.0]) == "2.00 (1.0)"
    assert report.significant(12345.6) == "12,346"
    assert report.significant(0) == "0"
    assert report.span([3, 1]) == "1 to 3"
    assert report.span([1200, 1200]) == "1,200"
    written = [report.brackets(value) for value in (None, 0.12, 4000, float("nan"), "5 min")]
    assert written == ["", " [0.12]", " [4,000]", " [diverges]", " [5 min]"]
