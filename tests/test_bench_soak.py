"""``python -m bench soak``: on a short stream, that it measures what it says."""

import numpy as np
import pytest
from bench_common import assert_missed

from bench import soak


@pytest.mark.parametrize("solver", ["sgd", "newton"])
def test_soak(run_bench, solver):
    code, out, result = run_bench("soak", "--samples", "3000", "--lines", "2", "--solver", solver)
    assert code == 0
    assert "condition" in out
    assert [each["samples"] for each in result["stretches"]] == [1736, 3472]
    last = result["stretches"][-1]
    assert 0 < last["residual"] < 1e-6
    assert 0 < last["lost"] <= 1


def test_a_factor_that_has_drifted_is_seen():
    model, stream = soak.make_model("sgd"), soak.Stream(0)
    soak.stretch(model, stream, 500)

    class Drifted:
        def to_archive(self):
            archive = model.to_archive()
            archive["factor"] = archive["factor"] * (1 + 1e-5)
            return archive

    assert soak.factor_residual(model)[0] < 1e-7
    np.testing.assert_allclose(soak.factor_residual(Drifted())[0], 2e-5, rtol=0.5)


@pytest.mark.parametrize(
    ("figure", "complaint"), [("residual", "factor"), ("lost", "lost"), ("unsaid", "saying")]
)
def test_what_wears_out_is_missed(figure, complaint):
    fine = {"residual": 0.0, "lost": 1.0, "unsaid": 0.0, "resident_mb": 1.0, "mini_batches": 0}
    assert_missed(soak.judge([fine]), None)
    assert_missed(soak.judge([{**fine, figure: 2.0}]), complaint)


def test_memory_counts_once_the_trace_is_full():
    each = {"residual": 0.0, "lost": 1.0, "unsaid": 0.0}
    grown = [
        {**each, "resident_mb": size, "mini_batches": count * soak.TRACE}
        for count, size in enumerate([10.0, 20.0, 30.0])
    ]
    assert_missed(soak.judge(grown[:2]), None)
    assert_missed(soak.judge(grown), "memory")
