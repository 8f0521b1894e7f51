"""``python -m bench paper``: every table complete, nothing run twice, on tiny data."""

import csv
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench import cli, runner, tasks
from bench.papers import colk, hog, polk, slkl, spppot
from parsimon import datasets

README = (Path(__file__).parents[1] / "bench/README.md").read_text(encoding="utf-8")


@pytest.fixture(name="data")
def _data(monkeypatch, tmp_path):
    """Stand-ins for all data sets: a few digits, textures, shots, crimes, distances, tables."""
    random = np.random.default_rng(0)
    images = random.integers(0, 255, size=(13, 60, 60), dtype=np.uint8)
    images[:, :, ::3] //= np.arange(1, 14, dtype=np.uint8)[:, None, None]
    folder = tmp_path / "data"
    folder.mkdir()
    np.savez(folder / "brodatz13.npz", images=images)
    monkeypatch.setenv("PARSIMON_DATA", str(folder))

    def digits(*, subset, **_):
        y = np.arange(150 if subset == "train" else 60) % 10
        return random.random((len(y), 20)) + np.eye(20)[y], y

    def points(features):
        def draw(*, subset, random_state, return_X):
            size = (150 if subset == "train" else 50, features)
            return 0.5 + 0.1 * np.random.RandomState(random_state).normal(size=size)

        return draw

    def table(samples):
        X = random.normal(size=(samples, 10))
        return lambda **_: (X, 20 + X.sum(axis=1))

    stand_ins = {
        **dict.fromkeys(("mnist", "usps"), digits),
        "boston": table(400),
        "abalone": table(3050),
        "curry_shots": points(1),
        "chicago_crimes": points(2),
    }
    for name, load in stand_ins.items():
        monkeypatch.setattr(datasets, f"load_{name}", load)
    # These digits are no 28 x 28 pixels.
    monkeypatch.setattr(hog, "features", np.asarray)


@pytest.fixture(name="tiny")
def _tiny(little_risk, monkeypatch):
    """Make --quick quicker still."""

    def shrink(experiment, **quick):
        return replace(experiment, quick={**experiment.quick, **quick})

    few = {"samples": 130, "test_samples": 60}
    textures = {"pixels": 3000, "crop": None}
    tables = [
        (shrink(each, **few, **(textures if "crop" in each.quick else {})), numbers)
        for each, numbers in polk.TABLES
    ]
    monkeypatch.setattr(polk, "TABLES", tables)
    monkeypatch.setattr(spppot, "MNIST", shrink(spppot.MNIST, **few))
    densities = {name: shrink(each, samples=100) for name, each in spppot.DENSITIES.items()}
    monkeypatch.setattr(spppot, "DENSITIES", densities)
    monkeypatch.setattr(slkl, "MNIST", shrink(slkl.MNIST, samples=130, columns=40))
    monkeypatch.setattr(slkl, "EPOCHS", shrink(slkl.EPOCHS, epochs=3))
    monkeypatch.setitem(runner.QUICK, "iterations", 3)


@pytest.fixture(name="run")
def _run(tmp_path):
    """Run a paper, quickly, into a folder; its exit code."""
    out = ["--out", str(tmp_path / "out")]
    return lambda name, *more: cli.main(["paper", name, "--quick", *out, *more])


@pytest.fixture(name="run_twice")
def _run_twice(data, tiny, run, monkeypatch, capsys, tmp_path):
    """Run a paper twice: it prints a text and draws figures, and computes nothing again.

    Returns what reads its tables by name.
    """

    def keep(_, configuration, __):
        pytest.fail(f"{configuration} was run again")

    def run_twice(name, text, drawn, *more):
        assert run(name, *more) == 0
        first = capsys.readouterr().out
        assert text in first
        monkeypatch.setattr(runner.Store, "keep", keep)
        assert run(name, *more) == 0
        assert capsys.readouterr().out == first
        pytest.importorskip("matplotlib")
        pictures = sorted(path.name for path in (tmp_path / "out").glob("*.png"))
        assert pictures == [f"{name}-figure{figure}.png" for figure in drawn]
        return lambda table: read(tmp_path / f"out/{name}-{table}.csv")

    return run_twice


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def figure(cell):
    """Return the number that a cell begins with."""
    return float(cell.split()[0].replace(",", ""))


@pytest.mark.slow
def test_polk_fills_every_row(run_twice):
    table = run_twice("polk", "[0.0919]", range(2, 9))
    names = ("table-2-multidist", "table-2-multidist-as-easy-as-printed")
    names += ("the-short-paper-unit-variances", "table-3-mnist", "table-3-brodatz")
    names += ("checks-multidist", "checks-mnist", "checks-brodatz")
    for (experiment, _), name in zip(polk.TABLES, names, strict=True):
        rows = table(name)
        assert [row["method"] for row in rows] == [method.name for method in experiment.methods]
        for row, method in zip(rows, experiment.methods, strict=True):
            assert 0 <= figure(row["error %"]) <= 100
            assert figure(row["points"]) > 0
            assert float(row["CPU s"]) >= 0
            has_risk = method.kind not in ("Libsvm", "NystroemSGD")
            assert row["risk"][0].isdigit() if has_risk else row["risk"][0] == "-"
            if method.printed.get("error") is not None:
                assert row["error %"].endswith(f"[{method.printed['error']:g}]")


@pytest.mark.slow
def test_draws_as_easy_as_the_printed_one_are_chosen_by_their_bayes_error_alone():
    seeds = tasks.easy_seeds(2)
    assert len(set(seeds)) == 2
    for number, seed in enumerate(seeds):
        task = tasks.multidist_easy(500, number)
        low, high = tasks.EASY
        assert low <= tasks.multidist(1, seed).extra["bayes"] <= high
        # On other samples of the same law: three deviations of 10,000.
        assert low - 0.6 <= task.extra["bayes"] <= high + 0.6
        np.testing.assert_array_equal(task.X, tasks.multidist(500, seed).X)
    errors = [tasks.multidist(1, seed).extra["bayes"] for seed in range(seeds[1])]
    assert sum(low <= error <= high for error in errors) == 1
    assert tasks.multidist_unit(100, 0).extra["bayes"] > 30


def test_colk_fills_every_row(run_twice):
    table = run_twice("colk", "[diverges]", (1, 2, 3), "--runs", "2")
    rows = table("figure2")
    names = [method.name for method in (*colk.METHODS, *colk.comparators(0.02))]
    # Which step is the best of a comparator depends on the data.
    found = [re.sub(r"(BSGD.*), alpha .*", r"\1, alpha .02", row["method"]) for row in rows]
    assert found == 3 * names
    last = table("figure2-last")
    assert [row["method"] for row in last] == [row["method"] for row in rows]
    assert all(a["excess"] != b["excess"] for a, b in zip(rows, last, strict=True) if a["mean"])
    for row in rows:
        if "as printed" not in row["method"]:
            assert figure(row["excess"]) > 0
            assert figure(row["CVaR .9"]) > figure(row["mean"])
    assert len(table("figure3")) == 3


@pytest.mark.slow
def test_spppot_fills_every_row(run_twice):
    table = run_twice("spppot", "[5 min]", (1, 2, "3-curves", "3-maps", 4))
    for name, methods in spppot.TABLE_ONE.items():
        rows = table(f"table1-{name}")
        assert [row["method"] for row in rows] == [method.name for method in methods]
        for row in rows:
            # The batch fit is ours: the paper has none.
            assert row["points"].endswith("]") == (row["method"] != "batch L-BFGS")
            if row["above batch"] != "diverges":
                float(row["above batch"])
    assert len(table("figure-4-mnist")) == len(spppot.MNIST.methods)


def test_slkl_fills_every_row(run_twice):
    table = run_twice("slkl", "[around 2]", (1, 2, 3))
    for name, data_set in slkl.DATA_SETS.items():
        rows, printed = table(name), data_set.printed
        assert {row["method"] for row in rows} >= {*printed, "SLKL, y centred", "m0, y centred"}
        for method, cell in (row.values() for row in rows):
            assert figure(cell) >= 0
            assert cell.endswith(f" [{printed[method][0]}]" if method in printed else ")")
    (row,) = table("mnist")
    assert 0 <= figure(row["error %"]) <= 100
    assert 0 < int(row["columns in all"]) <= 40


@pytest.mark.slow
@pytest.mark.usefixtures("tiny", "no_data")
@pytest.mark.parametrize(
    ("paper", "missing"),
    [
        ("polk", ["mnist", "brodatz13"]),
        ("colk", ["LIDAR"]),
        ("spppot", ["Curry's shots", "Chicago's crimes", "mnist"]),
        ("slkl", ["boston", "abalone", "usps", "mnist"]),
    ],
)
def test_data_that_are_not_here_are_left_out_with_a_sentence(run, paper, missing, capsys):
    assert run(paper) == 0
    out = capsys.readouterr().out
    for name in missing:
        assert f"Left out: The task {name} cannot be run." in out


def test_the_example_of_the_readme_puts_a_method_beside_others(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for table in (tasks.TASKS, tasks.SETTINGS):
        monkeypatch.setitem(table, "digits", None)  # taken out again after the test
    (block,) = re.findall(r"^```python\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
    exec(compile(block, "bench/README.md", "exec"), {"__name__": "example"})
    rows = read(tmp_path / "out/mine-digits.csv")
    assert [row["method"] for row in rows] == ["3 neighbours", "LIBSVM", "POLK"]
    assert all(figure(row["error %"]) < 15 for row in rows)
