"""What tests of several parts share, and what all tests need of the system."""

import json
import os
import runpy
import signal
from pathlib import Path

import numpy as np
import pytest

from bench.cli import main
from parsimon import datasets

ROOT = Path(__file__).resolve().parents[1]
OFFLINE = ROOT / "tests" / "offline"

# A shell that starts the tests in the background has them ignore Ctrl-C, and so would the programs
# that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No network, neither here nor in the programs that the tests start.
runpy.run_path(str(OFFLINE / "sitecustomize.py"))
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(OFFLINE), os.environ.get("PYTHONPATH")])
)


@pytest.fixture(autouse=True)
def real_data(request, monkeypatch):
    """Show real data to the tests that are marked with their names, and to no others."""
    mark = request.node.get_closest_marker("data")
    if mark is None:
        monkeypatch.delenv("PARSIMON_DATA", raising=False)
        return
    folder = os.environ.get("PARSIMON_DATA", "")
    absent = [name for name in mark.args if not (Path(folder) / f"{name}.npz").is_file()]
    if not folder or absent:
        pytest.skip(f"needs {', '.join(mark.args)} (.npz) in the folder that PARSIMON_DATA names")


@pytest.fixture
def plt():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


@pytest.fixture
def no_data(monkeypatch):
    """Have no data sets but those that are drawn."""

    def absent(**_):
        raise FileNotFoundError("The data are not here.")

    for name in vars(datasets):
        if name.startswith("load_"):
            monkeypatch.setattr(datasets, name, absent)


@pytest.fixture
def little_risk(monkeypatch):
    """Make LIDAR a step of 40 samples, and little of all else of the experiments with risk."""
    X = np.linspace(390, 720, 40)[:, None]
    monkeypatch.setattr(datasets, "load_lidar", lambda **_: (X, -0.7 * (X[:, 0] > 555)))
    for name, value in (("QUICK_SAMPLES", 200), ("TEST_SAMPLES", 500), ("LIDAR_EPOCHS", 2)):
        monkeypatch.setattr(f"bench.papers.colk.{name}", value)


@pytest.fixture
def run_bench(tmp_path, capsys):
    """Run a command of the benchmarks; its exit code, what it printed and what it wrote as JSON."""

    def run(*arguments):
        path = tmp_path / "found.json"
        code = main([*arguments, "--json", str(path)])
        text = path.read_text()
        assert "NaN" not in text
        return code, capsys.readouterr().out, json.loads(text)

    return run
