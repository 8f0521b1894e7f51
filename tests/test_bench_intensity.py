"""The benchmark of intensities, on little data."""

from dataclasses import replace

import numpy as np
import pytest
from bench_common import assert_missed
from numpy.testing import assert_allclose

from bench import cli
from bench.baselines.intensity import BatchIntensity
from bench.papers import intensity
from bench.runner import Result, Row
from parsimon.schedules import AdaptiveBudget


def test_defaults_run_for_their_own_epochs_and_for_four_times_as_many(run_bench):
    code, out, found = run_bench("intensity", "--data", "toy", "--seeds", "2", "--samples", "400")
    assert code == 0
    assert "ok  " not in out  # so few samples prove nothing
    rows = {row["method"]: row["results"] for row in found["rows"]["toy"]}
    assert len(rows) == 1 + 3 + 2 * 3
    for name in intensity.ESTIMATORS:
        for short, long in zip(rows[name], rows[f"{name}, 4 x epochs"], strict=True):
            assert long["epochs"] == 4 * round(short["epochs"])
            assert short["model_order"] == 100
    assert [result["above"] for result in rows["batch L-BFGS"]] == [0, 0]
    assert len({result["nll"] for result in rows["batch L-BFGS"]}) == 2
    assert rows["POLK in the primal, printed start"][0]["negative"] > 0.2
    assert "POLK in the primal, uniform start" in rows
    offered = intensity.DENSITIES["toy"].offered
    assert offered == {"bandwidth": 0.0065**0.5, "grid_size": 100, "domain": [(0.0, 1.0)]}


def test_nll_is_that_of_a_density_with_its_own_integral():
    """A density that is too high by exp(a) costs exp(a) - 1 - a."""

    class TooHigh(BatchIntensity):
        def score_samples(self, X):
            return super().score_samples(X) + 0.5

    methods = (intensity.BATCH, replace(intensity.BATCH, name="too high", estimator=TooHigh))
    rows = replace(intensity.DENSITIES["toy"], methods=methods, runs=1).rows()
    batch, high = intensity.above_batch(rows)
    assert_allclose(high.values("above"), np.exp(0.5) - 1.5, rtol=1e-3)
    assert_allclose(high.values("integral"), np.exp(0.5), rtol=1e-3)
    assert 0 < abs(batch.mean("nll") - batch.mean("true_nll")) < 0.01


@pytest.mark.parametrize(
    ("figures", "complaint"),
    [
        ({"above": 0.002, "integral": 1.01}, None),
        ({"above": 0.004, "integral": 1.01}, "mean NLL above the batch fit's: 0.004 (<= 0.003)"),
        ({"above": 0.002, "integral": 0.97}, "integral off by: 0.03 (<= 0.02)"),
        (None, "runs that diverge: 1 (<= 0)"),
    ],
)
def test_a_default_that_is_off_fails(figures, complaint):
    result = Result(figures or {}, diverged=figures is None)
    rows = [Row(method, [result]) for method in intensity.DEFAULT["toy"]]
    assert_missed(intensity.judge({"toy": rows}), complaint, len(intensity.OURS))


def test_printed_parameters_are_those_of_table_one():
    of = {name: [] for name in intensity.ESTIMATORS}
    for method in intensity.TABLE_ONE["toy"]:
        of.get(method.kind, []).append(method.settings)
    first, adaptive = of["SPPPOTIntensity"]
    assert (first["learning_rate"], first["budget"]) == (0.012, 6.6e-6)
    assert first["gradient"] == adaptive["gradient"] == "kernel_embedding"
    assert adaptive["budget"] == AdaptiveBudget(105, 2e-6)
    newton = of["MirrorNewtonIntensity"]
    assert [settings["learning_rate"] for settings in newton] == [1.25, 1.0]
    assert [settings.get("grid_size", 100) for settings in newton] == [100, 50]
    assert all(settings["epochs"] == 8 and settings["damping"] == 1 for settings in newton)


@pytest.mark.usefixtures("no_data")
def test_data_that_are_not_there_are_left_out(run_bench, capsys):
    arguments = ["intensity", "--printed", "--seeds", "1", "--samples", "300", "--data", "curry"]
    code, out, _ = run_bench(*arguments, "toy")
    assert code == 0
    assert "Left out: The task Curry's shots cannot be run." in out
    assert "Algorithm 4" in out
    assert cli.main([*arguments, "chicago"]) == 2
    assert "There is nothing to run." in capsys.readouterr().err
