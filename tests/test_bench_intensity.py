"""The benchmark of intensities, on little data and with estimators that do as they are told."""

import json
import warnings
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from numpy.testing import assert_allclose

import parsimon
from parsimon.schedules import AdaptiveBudget

NAMES = ("SPPPOTIntensity", "MirrorNewtonIntensity", "HybridIntensity")


class Standin:
    """A batch fit under another name; `offset` is added to its log density."""

    made = []
    offset = 0.0
    warning = None
    diverges = False

    def __init__(self, *, bandwidth, grid_size, domain, random_state, epochs="auto", **settings):
        self.given = {"bandwidth": bandwidth, "grid_size": grid_size, "domain": domain, **settings}
        self.random_state = random_state
        self.epochs = epochs
        type(self).made.append(self)

    def fit(self, X):
        if self.diverges:
            raise parsimon.DivergenceError("Too large a step.")
        if self.warning:
            warnings.warn(self.warning, UserWarning, stacklevel=2)
        self.t_ = (2 if self.epochs == "auto" else self.epochs) * len(X)
        kind = import_module("bench.baselines.intensity").BatchIntensity
        self.fitted = kind(self.given["bandwidth"], self.given["grid_size"]).fit(X)
        self.model_order_, self.integral_ = self.fitted.model_order_, self.fitted.integral_
        return self

    def score_samples(self, X):
        return self.fitted.score_samples(X) + self.offset


@pytest.fixture(name="standins")
def _standins(monkeypatch):
    kinds = {name: type(name, (Standin,), {"made": []}) for name in NAMES}
    for name, kind in kinds.items():
        monkeypatch.setattr(parsimon, name, kind, raising=False)
    return kinds


@pytest.fixture(name="run")
def _run(bench):
    return lambda *arguments: bench("cli").main(["intensity", *arguments])


def test_defaults_run_for_their_own_epochs_and_for_four_times_as_many(
    run, standins, tmp_path, capsys
):
    path = tmp_path / "intensity.json"
    assert run("--data", "toy", "--seeds", "2", "--json", str(path)) == 0
    out = capsys.readouterr().out
    assert "ok  " in out
    assert "MISS" not in out
    for kind in standins.values():
        assert [model.epochs for model in kind.made] == ["auto", 8] * 2
        assert [model.random_state for model in kind.made] == [0, 0, 1, 1]
        toy = {"bandwidth": 0.0065**0.5, "grid_size": 100, "domain": [(0.0, 1.0)]}
        assert kind.made[0].given == toy
    found = json.loads(path.read_text())["rows"]["toy"]
    rows = {row["method"]: row["results"] for row in found}
    assert len(rows) == 1 + 3 + 2 * 3
    for seed in range(2):
        ours = rows["SPPPOTIntensity, 4 x epochs"][seed]
        assert_allclose(ours["above"], 0, atol=1e-9)
        assert ours["epochs"] == 8
        assert ours["model_order"] == 100
        assert rows["batch L-BFGS"][seed]["above"] == 0
    negative = [row["results"][0]["negative"] for row in found if row["estimator"] == "PrimalPOLK"]
    assert len(negative) == 2
    assert min(negative) > 0.2


def test_nll_is_that_of_a_density_with_its_own_integral(bench, standins):
    """A density that is too high by exp(a) costs exp(a) - 1 - a."""
    standins["SPPPOTIntensity"].offset = 0.5
    intensity = bench("papers.intensity")
    methods = (intensity.BATCH, intensity.OURS[0])
    rows = replace(intensity.DENSITIES["toy"], methods=methods, runs=1).rows()
    batch, ours = intensity.above_batch(rows)
    assert_allclose(ours.values("above"), np.exp(0.5) - 1.5, rtol=1e-3)
    assert_allclose(ours.values("integral"), np.exp(0.5), rtol=1e-3)
    assert 0 < abs(batch.mean("nll") - batch.mean("true_nll")) < 0.01


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"offset": 0.1}, "above the batch fit"),
        ({"offset": 0.03}, "integral off by: 0.03"),
        ({"diverges": True}, "runs that diverge: 1"),
    ],
)
def test_a_default_that_is_off_fails(run, standins, capsys, change, complaint):
    for name, value in change.items():
        setattr(standins["HybridIntensity"], name, value)
    assert run("--data", "toy", "--seeds", "1") == 1
    failures = [line for line in capsys.readouterr().out.splitlines() if line.startswith("MISS")]
    assert len([line for line in failures if complaint in line]) == 2
    assert all("HybridIntensity" in line for line in failures)


def test_what_diverges_and_what_warns_is_said(run, standins, capsys):
    standins["SPPPOTIntensity"].diverges = True
    standins["HybridIntensity"].warning = "The target cannot be held."
    assert run("--data", "toy", "--seeds", "1", "--samples", "500", "--printed") == 0
    out = capsys.readouterr().out
    assert out.count("diverges") == 2  # both rows of Algorithm 1
    assert out.count("UserWarning: The target cannot be held.") == 1
    assert "ok  " not in out


def test_printed_parameters_are_those_of_table_one(run, standins):
    assert run("--data", "toy", "--seeds", "1", "--printed") == 0
    first, adaptive = (model.given for model in standins["SPPPOTIntensity"].made)
    assert (first["learning_rate"], first["budget"]) == (0.012, 6.6e-6)
    assert first["gradient"] == adaptive["gradient"] == "kernel_embedding"
    assert adaptive["budget"] == AdaptiveBudget(105, 2e-6)
    newton = standins["MirrorNewtonIntensity"].made
    assert [model.given["learning_rate"] for model in newton] == [1.25, 1.0]
    assert [model.given["grid_size"] for model in newton] == [100, 50]
    assert all(model.epochs == 8 and model.given["damping"] == 1 for model in newton)


def test_estimators_that_are_not_there_are_left_out(run, monkeypatch, capsys):
    for name in NAMES:
        monkeypatch.delattr(parsimon, name, raising=False)
    assert run("--data", "toy", "--seeds", "1", "--samples", "500") == 0
    out = capsys.readouterr().out
    assert out.count("not in this build") == 6
    assert "PMD" in out


@pytest.mark.usefixtures("standins")
def test_data_that_are_not_there_are_left_out(run, monkeypatch, capsys):
    monkeypatch.delenv("PARSIMON_DATA", raising=False)
    arguments = ["--seeds", "1", "--samples", "300"]
    assert run("--data", "curry", "toy", *arguments) == 0
    assert "Left out: The task Curry's shots cannot be run." in capsys.readouterr().out
    assert run("--data", "curry", "chicago", *arguments) == 2
    assert "There is nothing to run." in capsys.readouterr().err
