"""The benchmarks of intensities, on little data and with estimators that do as they are told."""

import argparse
import json
import warnings
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
    auto_epochs = 2
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
        epochs = self.auto_epochs if self.epochs == "auto" else self.epochs
        self.t_ = epochs * len(X)
        kind = import_module("bench.baselines.intensity").BatchIntensity
        self.fitted = kind(self.given["bandwidth"], self.given["grid_size"]).fit(X)
        self.model_order_, self.integral_ = self.fitted.model_order_, self.fitted.integral_
        sizes = [*[30] * (len(X) // 30), len(X) % 30] * epochs
        samples = np.cumsum(sizes)
        self.trace_ = {"samples": samples, "model_order": np.full(len(samples), 100)}
        return self

    def score_samples(self, X):
        return self.fitted.score_samples(X) + self.offset


@pytest.fixture(name="standins")
def _standins(monkeypatch):
    kinds = {name: type(name, (Standin,), {"made": []}) for name in NAMES}
    for name, kind in kinds.items():
        monkeypatch.setattr(parsimon, name, kind, raising=False)
    return kinds


@pytest.fixture(name="quick")
def _quick(bench, monkeypatch):
    """Make rates quick to measure, if not precise."""
    for kind in (bench("machine").GemmRate, bench("intensity_speed").VectorRates):
        monkeypatch.setattr(
            kind,
            "measure",
            lambda self, *given, original=kind.measure: original(self, *given, seconds=0),
        )


def run(module, *arguments):
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    return module.run(parser.parse_args(arguments))


# -- likelihoods -----------------------------------------------------------------------------------


def test_defaults_run_for_their_own_epochs_and_for_four_times_as_many(
    bench, standins, tmp_path, capsys
):
    path = tmp_path / "intensity.json"
    assert run(bench("intensity"), "--data", "toy", "--seeds", "2", "--json", str(path)) == 0
    out = capsys.readouterr().out
    assert "PASSED" in out
    assert "4 x epochs" in out
    for kind in standins.values():
        assert [model.epochs for model in kind.made] == ["auto", 8] * 2
        assert [model.random_state for model in kind.made] == [0, 0, 1, 1]
        assert kind.made[0].given == {
            "bandwidth": 0.0065**0.5,
            "grid_size": 100,
            "domain": [(0.0, 1.0)],
        }
    result = json.loads(path.read_text())["data"]["toy"]
    rows = {(row["estimator"], row["method"]): row["results"] for row in result["rows"]}
    assert len(rows) == 1 + 3 + 2 * 3
    for seed in range(2):
        ours = rows["SPPPOTIntensity", "4 x epochs"][seed]
        assert_allclose(ours["dnll"], 0, atol=1e-9)
        assert ours["epochs"] == 8
        assert ours["model_order"] == 100
        assert rows["BatchIntensity", "batch L-BFGS"][seed]["dnll"] == 0
    negative = [row[0]["negative"] for key, row in rows.items() if key[0] == "PrimalPOLK"]
    assert len(negative) == 2
    assert min(negative) > 0.2


def test_nll_is_that_of_a_density_with_its_own_integral(bench, standins):
    """A density that is too high by exp(a) costs exp(a) - 1 - a."""
    standins["SPPPOTIntensity"].offset = 0.5
    settings, intensity = bench("intensity_settings"), bench("intensity")
    experiment = settings.EXPERIMENTS["toy"]
    rows, batch, _ = intensity.compare(experiment, [experiment.load(0)], settings.OURS[:1])
    assert_allclose(rows[1].values("dnll"), np.exp(0.5) - 1.5, rtol=1e-3)
    assert_allclose(rows[1].values("integral"), np.exp(0.5), rtol=1e-3)
    truth = experiment.load(0).true_nll
    assert 0 < abs(batch[0] - truth) < 0.01


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"offset": 0.1}, "above the batch fit"),
        ({"offset": 0.03}, "integral that is off by 0.03"),
        ({"diverges": True}, "diverges"),
    ],
)
def test_a_default_that_is_off_fails(bench, standins, capsys, change, complaint):
    for name, value in change.items():
        setattr(standins["HybridIntensity"], name, value)
    assert run(bench("intensity"), "--data", "toy", "--seeds", "1") == 1
    out = capsys.readouterr().out
    failures = [line for line in out.splitlines() if line.startswith("FAILED")]
    assert len([line for line in failures if complaint in line]) == 2
    assert all("HybridIntensity" in line for line in failures)


def test_what_diverges_and_what_warns_is_said(bench, standins, capsys):
    standins["SPPPOTIntensity"].diverges = True
    standins["HybridIntensity"].warning = "The target cannot be held."
    arguments = ["--data", "toy", "--seeds", "1", "--samples", "500", "--printed"]
    assert run(bench("intensity"), *arguments) == 0
    out = capsys.readouterr().out
    assert out.count("diverges") == 2  # both rows of Algorithm 1
    assert out.count("UserWarning: The target cannot be held.") == 1
    assert "PASSED" not in out


def test_printed_parameters_are_those_of_table_one(bench, standins):
    assert run(bench("intensity"), "--data", "toy", "--seeds", "1", "--printed") == 0
    first, adaptive = (model.given for model in standins["SPPPOTIntensity"].made)
    assert (first["learning_rate"], first["budget"]) == (0.012, 6.6e-6)
    assert first["gradient"] == adaptive["gradient"] == "kernel_embedding"
    assert adaptive["budget"] == AdaptiveBudget(105, 2e-6)
    newton = standins["MirrorNewtonIntensity"].made
    assert [model.given["learning_rate"] for model in newton] == [1.25, 1.0]
    assert [model.given["grid_size"] for model in newton] == [100, 50]
    assert all(model.epochs == 8 and model.given["damping"] == 1 for model in newton)


def test_estimators_that_are_not_there_are_left_out(bench, monkeypatch, capsys):
    for name in NAMES:
        monkeypatch.delattr(parsimon, name, raising=False)
    assert run(bench("intensity"), "--data", "toy", "--seeds", "1", "--samples", "500") == 0
    out = capsys.readouterr().out
    assert "has no SPPPOTIntensity, MirrorNewtonIntensity, HybridIntensity" in out
    assert "PMD" in out


@pytest.mark.usefixtures("standins")
def test_data_that_are_not_there_are_left_out(bench, monkeypatch, capsys):
    monkeypatch.delenv("PARSIMON_DATA", raising=False)
    arguments = ["--seeds", "1", "--samples", "300"]
    assert run(bench("intensity"), "--data", "curry", "toy", *arguments) == 0
    assert "Left out: Curry's shots" in capsys.readouterr().out
    with pytest.raises(bench("cli").MissingDataError):
        run(bench("intensity"), "--data", "curry", "chicago", *arguments)


# -- speed -----------------------------------------------------------------------------------------


def test_floor_of_newton(bench):
    flops = bench("intensity_speed").newton_flops(7, 100)
    assert asdict_of(flops) == (0, 7 * 2 * 20_000, 7 * 20_000)
    assert flops.total == 7 * 60_000


def test_floor_of_spppot_counts_by_the_order_before_each_batch(bench):
    trace = {"samples": np.array([30, 60, 70]), "model_order": np.array([104, 108, 100])}
    flops = bench("intensity_speed").spppot_flops(trace, 2, 100, 70)
    products = 2 * (30 * 100 * 102 + 30 * 104 * 106 + 10 * 108 * 110)
    assert asdict_of(flops) == (products, 2 * 100 * (100 + 104 + 108), 0)
    lost = {"samples": np.array([300, 330]), "model_order": np.array([104, 108])}
    with pytest.raises(ValueError, match="only the latest 2 mini-batches"):
        bench("intensity_speed").spppot_flops(lost, 2, 100, 330)


def asdict_of(flops):
    return flops.products, flops.matrix_vector, flops.rank_one


def test_least_times_count_and_calls_are_taken_off(bench):
    rates = bench("intensity_speed").VectorRates(10)
    rates.seconds = {
        ("rows_vector", 1): 1e-6,
        ("rows_vector", 10): 2e-6,
        ("columns_vector", 1): 1e-6,
        ("columns_vector", 10): 3e-6,
        ("rank_one", 1): 1e-6,
        ("rank_one", 10): 5e-6,
    }
    assert_allclose(rates.by_operation["matrix_vector"], 200 / 1e-6)
    assert_allclose(rates.by_operation["rank_one"], 200 / 4e-6)
    rates.seconds = dict.fromkeys(rates.seconds, 1e-15)
    rates.measure(seconds=0)
    assert set(rates.seconds.values()) == {1e-15}


@pytest.mark.usefixtures("quick", "standins")
@pytest.mark.parametrize("task", ["spppot", "newton"])
def test_speed(bench, task, tmp_path, capsys):
    path = tmp_path / "speed.json"
    arguments = ["--task", task, "--samples", "640", "--repeat", "2", "--json", str(path)]
    assert run(bench("intensity_speed"), *arguments) == 0
    assert "times the floor of its own operations" in capsys.readouterr().out
    result = json.loads(path.read_text())
    assert len(result["runs"]) == 2
    for figures in result["runs"]:
        assert figures["samples"] == 8 * 640
        flops, rates = figures["flops"], result["gflops"]
        own = sum(flops[name] / (1e9 * rates[name]) for name in flops)
        assert figures["own_floor_seconds"] == pytest.approx(own)
        assert figures["own_ratio"] == pytest.approx(figures["seconds"] / own)
        best = sum(flops.values()) / (1e9 * result["gemm"]["gflops"])
        assert figures["gemm_ratio"] == pytest.approx(figures["seconds"] / best)


def test_speed_draws_the_papers_number_of_samples(bench):
    assert bench("intensity_speed").draw(10_211, 0).shape == (10_211, 1)
