"""``python -m bench paper``: every table complete, nothing run twice, on tiny data."""

import csv
import json
import re
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import parsimon

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "bench/README.md").read_text(encoding="utf-8")


@pytest.fixture(name="data")
def _data(bench, monkeypatch, tmp_path):
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
        return lambda *, subset, random_state, return_X: (
            0.5
            + 0.1
            * np.random.RandomState(random_state).normal(
                size=(150 if subset == "train" else 50, features)
            )
        )

    def table(samples):
        X = random.normal(size=(samples, 10))
        return lambda **_: (X, 20 + X.sum(axis=1))

    datasets = bench("tasks").datasets
    for name in ("load_mnist", "load_usps"):
        monkeypatch.setattr(datasets, name, digits)
    monkeypatch.setattr(bench("hog"), "features", np.asarray)  # these digits are no 28 x 28 pixels
    monkeypatch.setattr(datasets, "load_boston", table(400))
    monkeypatch.setattr(datasets, "load_abalone", table(3050))
    monkeypatch.setattr(datasets, "load_curry_shots", points(1))
    monkeypatch.setattr(datasets, "load_chicago_crimes", points(2))
    line = np.linspace(390, 720, 40)[:, None]
    monkeypatch.setattr(datasets, "load_lidar", lambda **_: (line, -0.7 * (line[:, 0] > 555)))
    return datasets


@pytest.fixture(name="absent")
def _absent(bench, data, monkeypatch, tmp_path):
    def missing(**_):
        raise FileNotFoundError("It is not here.")

    for name in vars(data):
        if name.startswith("load_"):
            monkeypatch.setattr(data, name, missing)
    monkeypatch.setenv("PARSIMON_DATA", str(tmp_path))


@pytest.fixture(name="tiny")
def _tiny(bench, monkeypatch):
    """Make --quick quicker still."""
    for paper in ("polk", "spppot"):
        module = bench(f"papers.{paper}")
        small = {"quick": 130, "quick_test": 60}
        if paper == "polk":
            shrunk = [
                replace(each, **small, quick_data={"pixels": 3000} if each.quick_data else {})
                for each in module.EXPERIMENTS
            ]
            monkeypatch.setattr(module, "EXPERIMENTS", shrunk)
        else:
            monkeypatch.setattr(module, "MNIST", replace(module.MNIST, **small))
            monkeypatch.setattr(module, "QUICK_SAMPLES", 100)
    monkeypatch.setattr(bench("comparison"), "QUICK_ITERATIONS", 3)
    colk = bench("papers.colk")
    monkeypatch.setattr(colk, "QUICK_SAMPLES", 200)
    monkeypatch.setattr(colk, "TEST_SAMPLES", 500)
    monkeypatch.setattr(bench("risk"), "LIDAR_EPOCHS", 2)
    monkeypatch.setattr(bench("papers.slkl"), "QUICK_MNIST", {"samples": 130, "columns": 40})
    monkeypatch.setattr(bench("papers.slkl_figures"), "QUICK_EPOCHS", 3)


@pytest.fixture(name="run")
def _run(bench, tmp_path):
    """Run a command, quickly, into a folder; its exit code."""
    out = tmp_path / "out"
    return lambda name, *more: bench("cli").main(
        ["paper", name, "--quick", "--out", str(out), *more]
    )


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def figures_in(folder, paper):
    return sorted(path.name for path in folder.glob(f"{paper}-*.png"))


# -- the commands ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("data", "tiny")
@pytest.mark.filterwarnings("ignore:The model order is")  # so little data needs few points
def test_polk_fills_every_row(bench, run, tmp_path, capsys):
    assert run("polk") == 0
    out = capsys.readouterr().out
    assert "[0.0919]" in out
    for experiment, name in zip(
        bench("papers.polk").EXPERIMENTS,
        (
            *("table-2-multidist", "table-3-mnist", "table-3-brodatz"),
            *("checks-multidist", "checks-mnist", "checks-brodatz"),
        ),
        strict=True,
    ):
        rows = read(tmp_path / "out" / f"polk-{name}.csv")
        assert [row["method"] for row in rows] == [row.method.name for row in experiment.rows]
        for row, expected in zip(rows, experiment.rows, strict=True):
            if expected.method.is_here:
                assert 0 <= float(row["error %"].split()[0]) <= 100
                assert int(row["points"].split()[0].replace(",", "")) > 0
                assert float(row["CPU s"]) >= 0
                has_risk = expected.method.kind not in ("libsvm", "nystroem")
                assert row["risk"][0].isdigit() if has_risk else row["risk"][0] == "-"
            else:
                assert row["risk"].startswith("not in this build")
            if expected.printed[1] is not None:
                assert row["error %"].endswith(f"[{expected.printed[1]:g}]")
    pytest.importorskip("matplotlib")
    expected = [f"polk-figure{number}.png" for number in range(2, 9)]
    assert figures_in(tmp_path / "out", "polk") == expected


@pytest.mark.usefixtures("data", "tiny")
def test_colk_fills_every_row(bench, run, tmp_path, capsys):
    assert run("colk", "--runs", "2") == 0
    assert "[diverges]" in capsys.readouterr().out
    rows = read(tmp_path / "out/colk-figure2.csv")
    colk = bench("papers.colk")
    methods = (*colk.METHODS, *colk.COMPARATORS)
    assert len(rows) == 3 * len(methods)
    for row, method in zip(rows, 3 * methods, strict=True):
        assert row["method"] == method.name
        if not hasattr(parsimon, method.estimator):
            assert row["excess"] == "not in this build"
        elif "as printed" not in method.name:
            assert float(row["excess"].split()[0]) > 0
            assert float(row["CVaR .9"].split()[0]) > float(row["mean"].split()[0])
    assert len(read(tmp_path / "out/colk-figure3.csv")) == 3
    pytest.importorskip("matplotlib")
    expected = [f"colk-figure{number}.png" for number in (1, 2, 3)]
    assert figures_in(tmp_path / "out", "colk") == expected


@pytest.mark.slow
@pytest.mark.usefixtures("data", "tiny")
@pytest.mark.filterwarnings("ignore")  # so little data gives no good density
def test_spppot_fills_every_row(bench, run, tmp_path, capsys):
    assert run("spppot") == 0
    assert "[5 min]" in capsys.readouterr().out
    for name, experiment in bench("intensity_settings").EXPERIMENTS.items():
        rows = read(tmp_path / f"out/spppot-table1-{name}.csv")
        assert [row["method"] for row in rows] == [
            "batch L-BFGS",
            *(method.name for method in experiment.printed),
        ]
        for row in rows:
            assert row["points"].endswith("]")
            if row["above batch"] not in ("diverges", "infinite"):
                float(row["above batch"])
    expected = bench("papers.spppot").MNIST.rows
    assert len(read(tmp_path / "out/spppot-figure-4-mnist.csv")) == len(expected)
    pytest.importorskip("matplotlib")
    assert figures_in(tmp_path / "out", "spppot") == [
        "spppot-figure1.png",
        "spppot-figure2.png",
        "spppot-figure3-curves.png",
        "spppot-figure3-maps.png",
        "spppot-figure4.png",
    ]


@pytest.mark.usefixtures("data", "tiny")
def test_slkl_fills_every_row(bench, run, tmp_path, capsys):
    assert run("slkl") == 0
    assert "[around 2]" in capsys.readouterr().out
    settings = bench("slkl_settings")
    printed = {f"table2-{task.name}": task.printed for task in settings.TASKS}
    printed["table3"] = settings.PRINTED_DIGITS
    for name, figures in printed.items():
        rows = read(tmp_path / f"out/slkl-{name}.csv")
        assert {row["method"] for row in rows} >= {*figures, "SLKL, y centred", "m0, y centred"}
        for method, cell in (row.values() for row in rows):
            assert float(cell.split()[0].replace(",", "")) >= 0
            assert cell.endswith(f" [{figures[method][0]}]" if method in figures else ")")
    (row,) = read(tmp_path / "out/slkl-mnist.csv")
    assert 0 <= float(row["error %"].split()[0]) <= 100
    assert 0 < int(row["columns in all"]) <= 40
    pytest.importorskip("matplotlib")
    expected = [f"slkl-figure{number}.png" for number in (1, 2, 3)]
    assert figures_in(tmp_path / "out", "slkl") == expected


PAPERS = [
    pytest.param("polk", marks=pytest.mark.slow),
    "colk",
    pytest.param("spppot", marks=pytest.mark.slow),
    "slkl",
]


@pytest.mark.usefixtures("data", "tiny")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("paper", PAPERS)
def test_a_paper_is_not_run_twice(bench, run, paper, monkeypatch, capsys):
    assert run(paper) == 0
    first = capsys.readouterr().out
    store = bench("experiments").Store
    monkeypatch.setattr(store, "keep", lambda _, run, __: pytest.fail(f"{run} was run again"))
    assert run(paper) == 0
    assert capsys.readouterr().out == first


@pytest.mark.slow
@pytest.mark.usefixtures("absent", "tiny")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("paper", ["polk", "colk", "spppot", "slkl"])
def test_data_that_are_not_here_are_left_out_with_a_sentence(run, paper, capsys):
    assert run(paper) == 0
    out = capsys.readouterr().out
    absent = {
        "polk": ["The task mnist cannot be run.", "The task brodatz cannot be run."],
        "colk": ["LIDAR"],
        "spppot": ["Curry's shots", "Chicago's crimes", "The task mnist cannot be run."],
        "slkl": [f"The data set {name} is" for name in ("boston", "abalone", "usps", "mnist")],
    }
    for what in absent[paper]:
        assert f"Left out: {what}" in out


def test_the_example_of_the_readme_puts_a_method_beside_others(bench, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for table in (bench("classification").MAKERS, bench("tasks").TASKS, bench("tasks").SETTINGS):
        for name in ("neighbours", "digits"):
            monkeypatch.setitem(table, name, None)  # taken out again after the test
    (block,) = re.findall(r"^```python\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
    exec(compile(block, "bench/README.md", "exec"), {"__name__": "example"})
    rows = read(tmp_path / "out/mine-digits.csv")
    assert [row["method"] for row in rows] == ["3 neighbours", "LIBSVM", "POLK"]
    assert all(float(row["error %"].split()[0]) < 15 for row in rows)


# -- runs are kept ---------------------------------------------------------------------------------


@pytest.fixture(name="small")
def _small(bench):
    """Two methods on little of multidist."""
    comparison = bench("comparison")
    return comparison.Experiment(
        "multidist",
        table="Table 0, test",
        runs=3,
        figures={},
        quick=100,
        rows=(
            comparison.row("LIBSVM", "libsvm", "hinge", None, 4.0, 100),
            comparison.row("POLK", "polk", "hinge", parsimony=0.04),
        ),
        data={"samples": 100, "test_samples": 50},
    )


def options(out, runs=None):
    return Namespace(out=out, runs=runs, quick=False)


def test_a_second_run_computes_nothing(bench, small, monkeypatch, tmp_path):
    comparison = bench("comparison")
    first = comparison.compare(small, options(tmp_path))
    assert [len(results) for _, results in first] == [3, 3]
    assert len(list((tmp_path / "runs").glob("*.json"))) == 6
    monkeypatch.setattr(comparison, "train", lambda *_, **__: pytest.fail("trained again"))
    second = comparison.compare(small, options(tmp_path))
    for (_, one), (_, other) in zip(first, second, strict=True):
        for figure in ("error", "risk", "model_order", "seconds"):
            assert [each[figure] for each in one] == [each[figure] for each in other]


def test_what_was_interrupted_goes_on_where_it_stopped(bench, small, monkeypatch, tmp_path):
    comparison = bench("comparison")
    trained = []

    def train(task, method, seed, **given):
        if len(trained) == 4:
            raise KeyboardInterrupt
        trained.append((method.name, seed))
        return bench("classification").train(task, method, seed, **given)

    monkeypatch.setattr(comparison, "train", train)
    with pytest.raises(KeyboardInterrupt):
        comparison.compare(small, options(tmp_path))
    assert len(list((tmp_path / "runs").iterdir())) == 4
    trained.clear()
    comparison.compare(small, options(tmp_path))
    assert trained == [("LIBSVM", 2), ("POLK", 2)]


def test_a_run_is_known_by_all_that_it_depends_on(bench, monkeypatch):
    Run = bench("experiments").Run
    run = Run("task", "A method, K = 1", 0, {"samples": 5}, {"K": 1.0})
    assert run.file_name.startswith("task-a-method-k-1-0-")
    assert Run("task", "A method, K = 1", 0, {"samples": 5}, {"K": 1.0}).file_name == run.file_name
    others = [
        replace(run, seed=1),
        replace(run, data={"samples": 6}),
        replace(run, settings={"K": 2.0}),
        replace(run, settings={"K": parsimon.kernels.Gaussian(1.0)}),
        replace(run, settings={"K": parsimon.kernels.Gaussian(2.0)}),
    ]
    names = {run.file_name, *(other.file_name for other in others)}
    monkeypatch.setattr(parsimon, "__version__", "99")
    names.add(run.file_name)
    assert len(names) == 7


def test_a_kept_run_says_what_it_is(bench, small, tmp_path):
    bench("comparison").compare(small, options(tmp_path, runs=1))
    (path,) = (tmp_path / "runs").glob("*polk*.json")
    content = json.loads(path.read_text())
    assert content["configuration"]["settings"]["settings"] == {"parsimony": 0.04}
    assert content["configuration"]["parsimon"] == parsimon.__version__
    assert content["versions"]["numpy"] == np.__version__
    assert len(content["result"]["path"]["error"]) > 1


def test_other_seeds_are_other_draws(bench, small, tmp_path):
    (_, results), _ = bench("comparison").compare(small, options(tmp_path))
    assert len({result["model_order"] for result in results}) > 1


def test_a_row_that_is_run_once_is_compared_with_by_all_seeds(bench, small, tmp_path):
    comparison = bench("comparison")
    once, polk = small.rows
    rows = (replace(once, runs=1), polk)
    (best, once), (row, results) = comparison.compare(replace(small, rows=rows), options(tmp_path))
    assert (len(once), len(results)) == (1, 3)
    expected = np.mean([result["error"] for result in results]) - once[0]["error"]
    cell = comparison.above(row, results, best, once)
    assert cell.split()[0] == bench("experiments").significant(expected, 2)


def test_a_method_that_diverges_says_so(bench, small, monkeypatch, tmp_path, capsys):
    comparison = bench("comparison")
    monkeypatch.setattr(comparison, "train", lambda *_, **__: {"diverged": 32})
    found = comparison.compare(small, options(tmp_path))
    comparison.table(small, found).publish(tmp_path / "table.csv")
    assert read(tmp_path / "table.csv")[0]["risk"] == "diverges"
    assert "[4]" in capsys.readouterr().out


def test_numbers_are_written_with_what_they_vary_by(bench):
    experiments = bench("experiments")
    assert experiments.mean_and_sd([0.12345]) == "0.123"
    assert experiments.mean_and_sd([1.0, 3.0]) == "2.00 (1.0)"
    assert experiments.significant(12345.6) == "12,346"
    assert experiments.significant(0) == "0"
    assert experiments.span([3, 1]) == "1 to 3"
    assert experiments.span([1200, 1200]) == "1,200"
