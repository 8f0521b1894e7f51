"""``python -m bench paper``: every table complete, nothing run twice, on tiny data."""

import csv
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench import cli, runner, tasks
from bench.papers import colk, hog, polk, slkl, slkl_figures, spppot
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
    monkeypatch.setattr(slkl_figures, "EPOCHS", shrink(slkl_figures.EPOCHS, epochs=3))
    monkeypatch.setitem(runner.QUICK, "iterations", 3)


@pytest.fixture(name="run")
def _run(tmp_path):
    """Run a paper, quickly, into a folder; its exit code."""
    out = ["--out", str(tmp_path / "out")]
    return lambda name, *more: cli.main(["paper", name, "--quick", *out, *more])


@pytest.fixture(name="run_twice")
def _run_twice(run, monkeypatch, capsys):
    """Run a paper again and see that nothing is computed; what it printed."""

    def run_twice(name, *more):
        assert run(name, *more) == 0
        first = capsys.readouterr().out
        monkeypatch.setattr(
            runner.Store, "keep", lambda _, run, __: pytest.fail(f"{run} was run again")
        )
        assert run(name, *more) == 0
        assert capsys.readouterr().out == first
        return first

    return run_twice


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def assert_drawn(folder, paper, *figures):
    pytest.importorskip("matplotlib")
    drawn = sorted(path.name for path in folder.glob(f"{paper}-*.png"))
    assert drawn == [f"{paper}-figure{figure}.png" for figure in figures]


@pytest.mark.slow
@pytest.mark.usefixtures("data", "tiny")
def test_polk_fills_every_row(run_twice, tmp_path):
    assert "[0.0919]" in run_twice("polk")
    names = ("table-2-multidist", "table-3-mnist", "table-3-brodatz")
    names += ("checks-multidist", "checks-mnist", "checks-brodatz")
    for (experiment, _), name in zip(polk.TABLES, names, strict=True):
        rows = read(tmp_path / "out" / f"polk-{name}.csv")
        assert [row["method"] for row in rows] == [method.name for method in experiment.methods]
        for row, method in zip(rows, experiment.methods, strict=True):
            assert 0 <= float(row["error %"].split()[0]) <= 100
            assert int(row["points"].split()[0].replace(",", "")) > 0
            assert float(row["CPU s"]) >= 0
            has_risk = method.kind not in ("Libsvm", "NystroemSGD")
            assert row["risk"][0].isdigit() if has_risk else row["risk"][0] == "-"
            if method.printed.get("error") is not None:
                assert row["error %"].endswith(f"[{method.printed['error']:g}]")
    assert_drawn(tmp_path / "out", "polk", *range(2, 9))


@pytest.mark.usefixtures("data", "tiny")
def test_colk_fills_every_row(run_twice, tmp_path):
    assert "[diverges]" in run_twice("colk", "--runs", "2")
    rows = read(tmp_path / "out/colk-figure2.csv")
    methods = (*colk.METHODS, *colk.COMPARATORS)
    assert [row["method"] for row in rows] == 3 * [method.name for method in methods]
    for row in rows:
        if "as printed" not in row["method"]:
            assert float(row["excess"].split()[0]) > 0
            assert float(row["CVaR .9"].split()[0]) > float(row["mean"].split()[0])
    assert len(read(tmp_path / "out/colk-figure3.csv")) == 3
    assert_drawn(tmp_path / "out", "colk", 1, 2, 3)


@pytest.mark.slow
@pytest.mark.usefixtures("data", "tiny")
def test_spppot_fills_every_row(run_twice, tmp_path):
    assert "[5 min]" in run_twice("spppot")
    for name, methods in spppot.TABLE_ONE.items():
        rows = read(tmp_path / f"out/spppot-table1-{name}.csv")
        assert [row["method"] for row in rows] == [method.name for method in methods]
        for row in rows:
            assert row["points"].endswith("]")
            if row["above batch"] != "diverges":
                float(row["above batch"])
    assert len(read(tmp_path / "out/spppot-figure-4-mnist.csv")) == len(spppot.MNIST.methods)
    assert_drawn(tmp_path / "out", "spppot", 1, 2, "3-curves", "3-maps", 4)


@pytest.mark.usefixtures("data", "tiny")
def test_slkl_fills_every_row(run_twice, tmp_path):
    assert "[around 2]" in run_twice("slkl")
    for name, data_set in slkl.DATA_SETS.items():
        rows, printed = read(tmp_path / f"out/slkl-{name}.csv"), data_set.printed
        assert {row["method"] for row in rows} >= {*printed, "SLKL, y centred", "m0, y centred"}
        for method, cell in (row.values() for row in rows):
            assert float(cell.split()[0].replace(",", "")) >= 0
            assert cell.endswith(f" [{printed[method][0]}]" if method in printed else ")")
    (row,) = read(tmp_path / "out/slkl-mnist.csv")
    assert 0 <= float(row["error %"].split()[0]) <= 100
    assert 0 < int(row["columns in all"]) <= 40
    assert_drawn(tmp_path / "out", "slkl", 1, 2, 3)


@pytest.mark.slow
@pytest.mark.usefixtures("tiny", "no_data")
@pytest.mark.parametrize(
    ("paper", "missing"),
    [
        ("polk", ["mnist", "brodatz"]),
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
    assert all(float(row["error %"].split()[0]) < 15 for row in rows)
