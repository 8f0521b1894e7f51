"""``python -m parsimon``: train, predict, evaluate, inspect; what is said, and the exit codes."""

import csv
import io
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, make_friedman1

import parsimon
from parsimon._cli import main
from parsimon._io import known_estimators
from parsimon.stream import StreamingPipeline


def write_rows(path, count, seed=0):
    random = np.random.default_rng(seed)
    size, colour = random.normal(100, 30, count), random.choice(["red", "blue", "green"], count)
    label = np.where((size > 100) == (colour == "red"), "yes", "no")
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "size", "colour", "label"])
        writer.writerows(zip(range(count), size.round(3), colour, label, strict=True))
    return label


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with samples to train on and to test with."""
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "train.csv", 1000)
    write_rows(tmp_path / "test.csv", 300, seed=1)
    return tmp_path


TRAIN = [
    "train",
    "train.csv",
    "--target",
    "label",
    "-o",
    "model.parsimon",
    "--columns",
    "size,colour",
]


def table(text):
    """Return what a table says, by its first column."""
    lines = [line.strip().split("  ", 1) for line in text.splitlines() if line.startswith("  ")]
    return {cells[0]: cells[1].strip() for cells in lines if len(cells) == 2}


def test_without_arguments_it_says_what_it_can_do(capsys):
    assert main([]) == 0
    out = capsys.readouterr().out
    for word in ("train", "predict", "evaluate", "inspect", "--version", "exit codes", "examples"):
        assert word in out


@pytest.mark.parametrize("how", [[], ["--stream", "--block", "50"]])
def test_train_predict_evaluate_inspect(folder, capsys, monkeypatch, how):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main([*TRAIN, "--test", "test.csv", *how]) == 0
    said, shown = capsys.readouterr()
    trained = table(said)
    assert trained["estimator"] == "POLKClassifier"
    assert trained["classes"] == "2: no, yes"
    assert trained["samples"] == "1,000"
    assert float(trained["test accuracy"]) > 0.95
    assert "model.parsimon" in trained["written"]
    if "tqdm" in sys.modules:
        assert (
            "StreamingPipeline" if how else "POLKClassifier: solving for the weights: 100%"
        ) in shown

    model = parsimon.load("model.parsimon")
    assert isinstance(model, StreamingPipeline)
    assert trained["points"] == str(model.model_order_)
    assert model.estimator_.verbose == 0

    assert main(["evaluate", "model.parsimon", "test.csv", "--target", "label", "--quiet"]) == 0
    said, shown = capsys.readouterr()
    assert shown == ""
    assert table(said)["accuracy"] == trained["test accuracy"]

    assert main(["predict", "model.parsimon", "test.csv", "-o", "out.csv", "--block", "7"]) == 0
    with (folder / "out.csv").open() as file:
        predictions = [row["prediction"] for row in csv.DictReader(file)]
    with (folder / "test.csv").open() as file:
        truth = [row["label"] for row in csv.DictReader(file)]
    found = np.mean(np.array(predictions) == truth)
    assert f"{found:.4g}" == trained["test accuracy"]

    capsys.readouterr()
    assert main(["inspect", "model.parsimon", "--points", "3", "--entries"]) == 0
    out = capsys.readouterr().out
    about = table(out)
    assert about["points"] == trained["points"]
    assert about["classes"] == "no, yes"
    assert about["colour"] == "3 categories, 4 places free"
    assert about["size"].startswith("mean ")
    assert "the root of k(x, x)" in out
    assert float(about["largest move in one"]) <= float(about["largest budget"]) * 1.001
    assert about["weights"].startswith(f"{model.model_order_} x ")
    assert sum(" | " in line for line in out.splitlines()) == min(3, model.model_order_)


def test_probabilities(folder, capsys):
    assert main([*TRAIN, "--quiet"]) == 0
    capsys.readouterr()
    assert main(["predict", "model.parsimon", "test.csv", "--proba"]) == 1
    assert "--set loss=logistic" in capsys.readouterr().err
    assert main([*TRAIN, "--quiet", "--set", "loss=logistic", "--set", "max_points=30"]) == 0
    assert int(table(capsys.readouterr().out)["points"]) <= 30
    assert main(["predict", "model.parsimon", "test.csv", "--proba", "--quiet"]) == 0
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert rows[0] == ["prediction", "probability of no", "probability of yes"]
    for label, no, yes in rows[1:]:
        assert label == ("yes" if float(yes) > float(no) else "no")
        assert abs(float(yes) + float(no) - 1) < 1e-12


def test_regression_from_parquet(folder, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    arrow = pytest.importorskip("pyarrow")
    X, y = make_friedman1(400, random_state=0)
    columns = {**{f"x{i}": X[:, i] for i in range(10)}, "y": y}
    pytest.importorskip("pyarrow.parquet").write_table(arrow.table(columns), "a.parquet")
    for how in ([], ["--stream", "--block", "100"]):
        assert main(["train", "a.parquet", "--target", "y", "-o", "m", *how]) == 0
        said, shown = capsys.readouterr()
        assert table(said)["estimator"] == "POLKRegressor"
        assert "classes" not in table(said)
        if "tqdm" in sys.modules:
            assert "400/400" in shown
    assert main(["evaluate", "m", "a.parquet", "--target", "y", "--quiet"]) == 0
    found = table(capsys.readouterr().out)
    assert float(found["r2"]) > 0.8
    assert float(found["mean absolute error"]) ** 2 < float(found["mean squared error"])


def test_svmlight(folder, capsys, monkeypatch):
    X, y = parsimon.datasets.make_multidist(500, random_state=0)
    dump_svmlight_file(X, y, "a.svm", zero_based=False)
    assert main(["train", "a.svm", "-o", "m", "--quiet"]) == 0
    assert table(capsys.readouterr().out)["classes"] == "5: 0, 1, 2, 3, 4"
    assert main(["evaluate", "m", "a.svm", "--quiet", "--at-least", "0.9"]) == 0
    with (folder / "a.svm").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        arguments = ["train", "-", "--format", "svmlight", "--features", "2", "-o", "m", "--stream"]
        assert main([*arguments, "--quiet"]) == 0
    capsys.readouterr()
    with (folder / "a.svm").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert main(["predict", "m", "-", "--format", "svmlight", "--quiet"]) == 0
    predictions = capsys.readouterr().out.split()[1:]
    assert np.mean(np.array(predictions, dtype=int) == y) > 0.85


def test_numbers_as_labels_and_as_targets(folder, capsys):
    with (folder / "a.csv").open("w") as file:
        file.write("x,few,many\n")
        file.writelines(f"{i / 100},{i % 3},{i}\n" for i in range(100))
    for target, options, kind in (
        ("few", [], "POLKClassifier"),
        ("many", [], "POLKRegressor"),
        ("few", ["--task", "regression"], "POLKRegressor"),
        ("few", ["--text", "few"], "POLKClassifier"),
    ):
        arguments = ["train", "a.csv", "--target", target, "-o", "m", "--columns", "x", "--quiet"]
        assert main([*arguments, *options]) == 0
        assert table(capsys.readouterr().out)["estimator"] == kind
    # Labels that only look like numbers are compared as such.
    assert main(["evaluate", "m", "a.csv", "--target", "few", "--quiet"]) == 0
    assert float(table(capsys.readouterr().out)["accuracy"]) > 0.2


def test_a_model_that_python_saved(folder, capsys):
    X, y = parsimon.datasets.make_multidist(300, random_state=0)
    np.save("X.npy", np.column_stack([X, y]))
    parsimon.POLKClassifier(random_state=0).fit(X, y).save("plain.parsimon")
    assert main(["evaluate", "plain.parsimon", "X.npy", "--target=-1", "--quiet"]) == 0
    assert float(table(capsys.readouterr().out)["accuracy"]) > 0.9
    points = parsimon.datasets.make_poisson_gaussian(300, random_state=0)
    density = parsimon.SPPPOTIntensity(domain=(0, 1), random_state=0).fit(points)
    density.save("density.parsimon")
    assert main(["inspect", "density.parsimon"]) == 0
    assert table(capsys.readouterr().out)["estimator"] == "SPPPOTIntensity"
    assert main(["predict", "density.parsimon", "X.npy"]) == 1
    assert "holds a SPPPOTIntensity, which does not predict" in capsys.readouterr().err


def test_frames_with_names(folder, capsys):
    pandas = pytest.importorskip("pandas")
    X, y = parsimon.datasets.make_multidist(300, random_state=0)
    frame = pandas.DataFrame(X, columns=["a", "b"])
    parsimon.POLKClassifier(random_state=0).fit(frame, y).save("named.parsimon")
    frame.assign(y=y, c="text")[["c", "b", "y", "a"]].to_csv("a.csv", index=False)
    # An estimator by itself is given the columns as numbers, in its own order.
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        assert main(["evaluate", "named.parsimon", "a.csv", "--target", "y", "--quiet"]) == 0
    assert float(table(capsys.readouterr().out)["accuracy"]) > 0.9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "train.csv", "-o", "m"], "give --target"),
        (["train", "train.csv", "-o", "m", "--stream"], "give --target"),
        (["train", "train.csv", "--target", "lable", "-o", "m"], "has no column 'lable'; it has"),
        (["train", "none.csv", "--target", "label", "-o", "m"], "No such file"),
        (["train", "empty.csv", "--target", "label", "-o", "m"], "There are no samples"),
        (["train", "empty.csv", "--target", "label", "-o", "m", "--stream"], "no samples"),
        ([*TRAIN[:5], "no/m"], "There is no folder"),
        ([*TRAIN[:5], "."], "is a folder: give the name of a file"),
        ([*TRAIN, "--task", "regression"], "needs numbers to predict; the target"),
        (["predict", "none", "-"], "No such file"),
        ([*TRAIN, "--set", "loss"], "--set takes NAME=VALUE"),
        ([*TRAIN, "--set", "los=hinge"], "Invalid parameter 'los'"),
        ([*TRAIN, "--set", "loss=zero"], "loss must be one of"),
        ([*TRAIN, "--format", "svmlight"], "is no svmlight file"),
        (["predict", "train.csv", "train.csv"], "is not a parsimon model"),
        (["evaluate", "none", "train.csv"], "No such file"),
        (["inspect", "train.csv"], "is not a parsimon model"),
    ],
)
def test_what_cannot_be_done_ends_with_a_sentence(folder, capsys, arguments, message):
    (folder / "empty.csv").write_text("label,x\n")
    assert main([*arguments]) == 1
    shown = capsys.readouterr().err
    assert message in shown
    assert f"parsimon {arguments[0]}: " in shown
    assert "Traceback" not in shown
    assert not (folder / "m").exists()


def test_settings_are_checked_before_the_file_is_read(folder, capsys):
    for how in ([], ["--stream"], ["--task", "regression"]):
        arguments = ["train", "none.csv", "--target", "y", "-o", "m", *how]
        assert main([*arguments, "--set", "max_points=-3"]) == 1
        assert "max_points must be" in capsys.readouterr().err
        # What one of the two estimators knows may be meant.
        assert main([*arguments, "--set", "max_points=3"]) == 1
        assert "No such file" in capsys.readouterr().err
    assert main([*arguments, "--set", "class_weight=balanced"]) == 1
    assert "Invalid parameter 'class_weight'" in capsys.readouterr().err


def test_a_file_in_another_encoding_is_refused_with_a_remedy(folder, capsys):
    text = (folder / "train.csv").read_text().replace("green", "grün")
    (folder / "latin.csv").write_text(text, encoding="latin1")
    for how in ([], ["--stream"]):
        assert main(["train", "latin.csv", *TRAIN[2:], *how]) == 1
        shown = capsys.readouterr().err
        assert "The file 'latin.csv' is not text in UTF-8: there is a byte 0xfc" in shown
        assert "iconv -f LATIN1 -t UTF-8" in shown


def test_no_bar_where_nobody_watches(folder, capsys):
    for how in ([], ["--stream"]):
        assert main([*TRAIN, *how, "--test", "test.csv"]) == 0
        assert capsys.readouterr().err == ""


def test_figures_have_one_name_in_all_tables(folder, capsys):
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 2))
    rows = np.column_stack([X, X[:, 0] - X[:, 1]])
    np.savetxt("numbers.csv", rows, delimiter=",", header="a,b,y", comments="")
    train = ["train", "numbers.csv", "--target", "y", "-o", "m", "--test", "numbers.csv"]
    assert main(train) == 0
    batch = table(capsys.readouterr().out)
    assert main([*train, "--stream", "--block", "50"]) == 0
    stream = table(capsys.readouterr().out)
    assert main(["evaluate", "m", "numbers.csv", "--target", "y"]) == 0
    evaluated = table(capsys.readouterr().out)
    assert "training r2" in batch
    for name in ("r2", "mean absolute error"):
        assert name in stream
        assert name in evaluated
        assert f"test {name}" in batch
    assert main(TRAIN) == 0
    assert "training accuracy" in table(capsys.readouterr().out)


def test_inspect_says_how_many_epochs_the_samples_were_seen_in(folder, capsys):
    assert main([*TRAIN, "--set", "epochs=3"]) == 0
    capsys.readouterr()
    assert main(["inspect", "model.parsimon"]) == 0
    said = table(capsys.readouterr().out)
    assert said["samples seen"] == "3,000"
    assert said["epochs"] == "3"


def test_predictions_that_end_half_way_leave_the_file_as_it_was(folder, capsys):
    assert main([*TRAIN, "--quiet"]) == 0
    text = (folder / "test.csv").read_text()
    (folder / "broken.csv").write_text(text + "what,does,not,belong,here\n")
    arguments = ["predict", "model.parsimon", "broken.csv", "--quiet", "--block", "50"]
    assert main([*arguments, "-o", "out.csv"]) == 1
    assert not (folder / "out.csv").exists()
    (folder / "out.csv").write_text("before")
    assert main([*arguments, "-o", "out.csv"]) == 1
    assert (folder / "out.csv").read_text() == "before"
    assert not list(folder.glob("*.part"))
    # Nor does a file with other columns begin a table.
    (folder / "other.csv").write_text("x,y\n1,2\n")
    capsys.readouterr()
    assert main(["predict", "model.parsimon", "other.csv", "--quiet"]) == 1
    said, shown = capsys.readouterr()
    assert said == ""
    assert "has no column 'size', 'colour'; it has 'x', 'y'." in shown
    (folder / "none.csv").write_text("size,colour\n")
    assert main(["predict", "model.parsimon", "none.csv", "--quiet", "-o", "out.csv"]) == 0
    assert (folder / "out.csv").read_text() == "prediction\n"


@pytest.mark.parametrize("how", [[], ["--stream"]])
def test_what_was_learned_is_there_although_the_test_fails(folder, capsys, how):
    assert main([*TRAIN, *how, "--test", "none.csv"]) == 1
    assert "No such file" in capsys.readouterr().err
    assert main(["evaluate", "model.parsimon", "test.csv", "--target", "label"]) == 0


def test_a_stream_of_a_single_block_is_not_judged(folder, capsys):
    assert main([*TRAIN, "--stream"]) == 0
    assert table(capsys.readouterr().out)["accuracy"].startswith("not known: there was one block")


def test_files_without_names(folder, capsys):
    for name in ("train", "test"):
        lines = (folder / f"{name}.csv").read_text().splitlines(keepends=True)
        (folder / f"{name}.csv").write_text("".join(lines[1:]))
    train = ["train", "train.csv", "--target", "3", "--columns", "1,2", "-o", "model.parsimon"]
    assert main([*train, "--no-header", "--quiet"]) == 0
    capsys.readouterr()
    evaluate = ["evaluate", "model.parsimon", "test.csv", "--target", "3"]
    assert main([*evaluate, "--no-header", "--quiet"]) == 0
    assert float(table(capsys.readouterr().out)["accuracy"]) > 0.95
    assert main(["predict", "model.parsimon", "test.csv", "--no-header", "--quiet"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 301


def test_a_score_that_is_too_low_ends_with_1(folder, capsys):
    assert main([*TRAIN, "--quiet"]) == 0
    arguments = ["evaluate", "model.parsimon", "test.csv", "--target", "label", "--quiet"]
    assert main([*arguments, "--at-least", "0.9"]) == 0
    assert main([*arguments, "--at-least", "1.1"]) == 1
    assert "is below 1.1" in capsys.readouterr().out
    assert main(arguments[:-3]) == 1
    assert "There is nothing to compare with: give --target" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["fly"], ["train"], ["train", "a.csv", "--block", "0"]])
def test_wrong_arguments_end_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_control_c_ends_with_130(folder, capsys, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(StreamingPipeline, "fit", interrupt)
    assert main(TRAIN) == 130
    assert "Interrupted; nothing was written." in capsys.readouterr().err
    assert not (folder / "model.parsimon").exists()


def test_pipes(folder):
    """As a program, from one pipe to another that closes early."""
    python = [sys.executable, "-W", "error", "-m", "parsimon"]
    with (folder / "train.csv").open() as file:
        arguments = ["train", "-", "--format", "csv", *TRAIN[2:], "--quiet", "--stream"]
        subprocess.run([*python, *arguments], stdin=file, check=True, capture_output=True)
    predict = [*python, "predict", "model.parsimon", "train.csv", "--quiet", "--block", "1"]
    with subprocess.Popen(predict, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdout.readline() == b"prediction\n"
        program.stdout.close()
        assert program.stderr.read() == b""
    assert program.returncode == 0


def every_kind():
    """Return a small model of each estimator that a file can hold, and a function."""
    X, y = parsimon.datasets.make_multidist(120, random_state=0)
    square = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    domain = {"domain": [(0, 1), (0, 1)], "random_state": 0}
    small = parsimon.POLKRegressor(random_state=0).partial_fit(X, X[:, 0])
    for name, cls in known_estimators().items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what so few samples leave open
            if name.startswith("Compressed"):
                continue
            if name.endswith("Intensity"):
                yield cls(**domain).fit(square)
            elif name == "PolicyEvaluator":
                yield cls().partial_fit(X, X[:, 0], np.roll(X, 1, axis=0))
            elif name == "QLearner":
                actions = (X[:, 0] > 0).astype(int)
                yield cls().partial_fit(X, actions, X[:, 0], np.roll(X, 1, axis=0))
            else:
                yield cls(random_state=0).fit(X, y)
    yield small.expansion_


def test_every_model_can_be_inspected(folder, capsys):
    seen = set()
    for model in every_kind():
        seen.add(type(model).__name__)
        model.save("any.parsimon")
        assert main(["inspect", "any.parsimon", "--points", "2", "--entries"]) == 0
        said, shown = capsys.readouterr()
        assert shown == ""
        about = table(said.split("Entries:")[0])
        assert about["estimator"] == type(model).__name__
        assert float(about["norm"]) >= 0
        assert "Points, with their weights" in said
    compressed = {name for name in known_estimators() if name.startswith("Compressed")}
    assert seen | compressed == {*known_estimators(), "KernelExpansion"}
    assert about["features"] == "2"
    assert main(["predict", "any.parsimon", "train.csv"]) == 1
    assert "holds a KernelExpansion, which does not predict" in capsys.readouterr().err
