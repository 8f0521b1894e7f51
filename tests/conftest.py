"""What the tests of the benchmarks share, and what all tests need of the system."""

import json
import os
import runpy
import signal
from importlib import import_module
from pathlib import Path

import pytest

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
def bench(monkeypatch):
    """Import a module of the benchmarks, which are no part of the installed package."""
    pytest.importorskip("threadpoolctl")
    monkeypatch.syspath_prepend(ROOT)
    return lambda name: import_module(f"bench.{name}")


@pytest.fixture
def run_bench(bench, tmp_path):
    """Run a command of the benchmarks; its exit code, and what it wrote as JSON."""

    def run(*arguments):
        path = tmp_path / "found.json"
        code = bench("cli").main([*arguments, "--json", str(path)])
        text = path.read_text()
        assert "NaN" not in text
        return code, json.loads(text)

    return run
