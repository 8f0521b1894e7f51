"""What save promises: what it has written can be read, and nothing else is touched."""

import os
import signal
import stat
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest
from polk_common import GIVEN, state, task

import parsimon
from parsimon import POLKClassifier, POLKRegressor, SPPPOTIntensity, kernels

posix = pytest.mark.skipif(os.name != "posix", reason="owners, modes and links of POSIX")


@pytest.fixture(name="model", scope="module")
def _model():
    X, y = task()
    return POLKClassifier(**GIVEN).fit(X[:100], y[:100])


def assert_not_saved(model, path, message):
    path.write_bytes(b"before")
    with pytest.raises(ValueError, match=message):
        model.save(path)
    assert path.read_bytes() == b"before"
    assert [file.name for file in path.parent.iterdir()] == [path.name]


# -- save succeeds, load refuses ------------------------------------------------------------------


def fitted():
    X, y = task()
    return POLKClassifier(**GIVEN).fit(X[:100], y[:100])


@pytest.mark.parametrize("name", ["note_", "comment"])
def test_an_attribute_of_the_users_is_refused_before_anything_is_written(name, tmp_path):
    model = fitted()
    setattr(model, name, "mine")
    assert_not_saved(model, tmp_path / "model", f"given the attribute '{name}'")
    delattr(model, name)
    model.save(tmp_path / "model")
    assert state(parsimon.load(tmp_path / "model")) == state(model)


def test_a_subclass_is_refused_before_anything_is_written(tmp_path):
    class Mine(POLKClassifier):
        __init__ = POLKClassifier.__init__

    X, y = task()
    model = Mine(**GIVEN).fit(X[:100], y[:100])
    assert_not_saved(model, tmp_path / "model", "Mine is not one of them: use pickle")


def test_an_overflowing_budget_makes_no_trace_infinite(tmp_path):
    X, y = task()
    given = {**GIVEN, "parsimony": 1e308, "learning_rate": 100.0, "regularization": 1e-6}
    for solver in ("sgd", "newton"):
        model = POLKRegressor(**{**given, "solver": solver}).fit(X[:100], y[:100])
        assert np.isfinite(model.trace_["budget"]).all()
        model.save(tmp_path / "model")
        assert state(parsimon.load(tmp_path / "model")) == state(model)


def test_a_random_state_or_labels_that_no_file_holds_are_refused(tmp_path):
    X, y = task()
    X, y = X[:100], y[:100]
    model = POLKClassifier(**{**GIVEN, "random_state": np.random.RandomState(0)}).fit(X, y)
    assert_not_saved(model, tmp_path / "model", "random_state is RandomState")
    dates = np.array("2020-01-01", dtype="datetime64[D]") + y
    model = POLKClassifier(**GIVEN).fit(X, dates)
    assert_not_saved(model, tmp_path / "model", r"labels are of the type datetime64\[D\]")
    texts = np.array(["a", "b", "a\udc80"], dtype=object)[y % 3]
    model = POLKClassifier(**GIVEN).fit(X, texts)
    assert_not_saved(model, tmp_path / "model", "it must be UTF-8")


def test_an_expansion_that_could_not_be_read_again_is_not_written(tmp_path):
    f = parsimon.KernelExpansion(kernels.Gaussian(1.0), [[0.0], [1.0]], np.zeros((2, 0)))
    assert_not_saved(f, tmp_path / "model", "impossible sizes")
    with pytest.raises(ValueError, match="impossible sizes"):
        parsimon.export.dumps(f)
    with pytest.raises(ValueError, match="impossible sizes"):
        parsimon.export.to_json(f)
    huge = parsimon.KernelExpansion(kernels.Gaussian(1.0), [[0.0]], [1e100])
    assert_not_saved(huge, tmp_path / "model", "1e100 or more")


def test_an_expansion_names_what_is_wrong_with_a_path(tmp_path):
    f = parsimon.KernelExpansion(kernels.Gaussian(1.0), [[0.0], [1.0]], [2.0, -1.0])
    with pytest.raises(ValueError, match="holds a null character"):
        f.save("a\0b")
    with pytest.raises(ValueError, match="path is empty"):
        f.save("")
    f.save(tmp_path / "model")
    assert parsimon.load(tmp_path / "model").weights.tolist() == [2.0, -1.0]


def test_save_checks_its_own_bytes_before_it_renames(tmp_path, monkeypatch):
    model = fitted()
    monkeypatch.setattr(model, "n_features_in_", 7)
    assert_not_saved(model, tmp_path / "model", "Nothing was written to .*could not be read again")


@pytest.mark.parametrize("solver", ["newton", "sgd"])
def test_reload_bit_for_bit_with_many_nodes_and_a_wide_kernel(solver, tmp_path):
    random = np.random.RandomState(0)
    X = random.beta(2, 5, size=(300, 1))
    for kernel in (kernels.Gaussian(0.1), kernels.Cauchy(0.3), kernels.Gaussian(0.05)):
        model = SPPPOTIntensity(
            domain=(0, 1), grid_size=1024, kernel=kernel, random_state=0, solver=solver
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of one pass not being enough
            model.partial_fit(X[:64])
            model.save(tmp_path / "model")
            again = parsimon.load(tmp_path / "model")
            assert state(again) == state(model)
            for start in range(64, 300, 64):
                model.partial_fit(X[start : start + 64])
                again.partial_fit(X[start : start + 64])
        assert state(again) == state(model)


# -- paths ----------------------------------------------------------------------------------------


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o666, 0o400])
def test_a_file_keeps_its_mode(mode, model, tmp_path):
    path = tmp_path / "model"
    path.touch()
    path.chmod(mode)
    model.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert state(parsimon.load(path)) == state(model)


@posix
def test_a_new_file_has_the_mode_of_new_files(model, tmp_path):
    (tmp_path / "other").touch()
    model.save(tmp_path / "model")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("model", "other")]
    assert modes[0] == modes[1]


@posix
def test_a_link_is_followed(model, tmp_path):
    real, far = tmp_path / "real", tmp_path / "far"
    for folder in (real, far):
        folder.mkdir()
    (real / "model").write_bytes(b"before")
    (far / "link").symlink_to("../real/model")
    (tmp_path / "link").symlink_to(far / "link")
    model.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (far / "link").is_symlink()
    assert not (real / "model").is_symlink()
    assert state(parsimon.load(real / "model")) == state(model)
    # Also where there is nothing yet.
    (tmp_path / "new").symlink_to("real/made")
    model.save(tmp_path / "new")
    assert (tmp_path / "new").is_symlink()
    assert state(parsimon.load(real / "made")) == state(model)
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(OSError, match="round"):
        model.save(tmp_path / "round")


@posix
def test_what_is_not_a_regular_file_is_refused(model, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    link = tmp_path / "link"
    link.symlink_to("/dev/null")
    for path in (pipe, link, "/dev/null"):
        with pytest.raises(ValueError, match="is a device, a pipe or a socket"):
            model.save(path)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    with pytest.raises(OSError, match="director"):
        model.save(tmp_path)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "path is empty"),
        ("a\0b", "null character"),
        (b"a\0b", "null char"),
        ("\ud800", "characters that no file name can here"),
    ],
)
def test_paths_that_name_no_file_give_no_raw_errors(path, message, model):
    for call in (model.save, parsimon.load):
        with pytest.raises(ValueError, match=message):
            call(path)


KILLED = """
    import os, signal, sys
    import parsimon

    model = parsimon.load(sys.argv[1])
    written = os.path.join(os.path.dirname(sys.argv[2]), "ready")

    class Killing:
        def __fspath__(self):
            return sys.argv[2]

    import threading

    def kill():
        folder = os.path.dirname(sys.argv[2])
        while not any(name.endswith(".tmp") for name in os.listdir(folder)):
            pass
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=kill, daemon=True).start()
    while True:
        model.save(sys.argv[2])
"""


@posix
def test_killed_saves_leave_nothing_for_ever(model, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    model.save(tmp_path / "model")
    for _ in range(5):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(KILLED), tmp_path / "model", folder / "model"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
        if list(folder.glob(".parsimon-*.tmp")):
            break
    others = folder / ".parsimon-mine.tmp"  # not a name of ours
    others.touch()
    # What looks like a leftover stays while somebody is writing it.
    busy = folder / f".parsimon-{'0' * 16}.tmp"
    fcntl = pytest.importorskip("fcntl")
    with busy.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        model.save(folder / "model")
        assert {path.name for path in folder.iterdir()} == {"model", others.name, busy.name}
    model.save(folder / "model")
    assert {path.name for path in folder.iterdir()} == {"model", others.name}
    assert state(parsimon.load(folder / "model")) == state(model)
