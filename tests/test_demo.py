"""``python -m parsimon.demo``."""

import subprocess
import sys

import pytest

from parsimon import demo


def test_prints_a_table_and_writes_the_picture(tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    assert demo.main([]) == 0
    out = capsys.readouterr().out
    polk, svc = (line.split() for line in out.splitlines() if " % " in line)
    assert polk[:2] == ["parsimon", "POLKClassifier"]
    assert svc[:2] == ["scikit-learn", "SVC"]
    assert float(polk[2]) < float(svc[2]) + 4.0
    assert int(polk[4]) <= 25
    assert int(svc[4].replace(",", "")) > 300
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert "demo.png" in out


def test_shows_a_progress_bar_and_writes_where_it_is_told(tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("tqdm")
    arguments = ["--samples", "500", "--test-samples", "200", "--output", "out.png"]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "parsimon.demo", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "100%" in done.stderr
    assert "model_order=" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["out.png"]


def test_without_matplotlib_the_table_is_there_all_the_same(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    assert demo.main(["--samples", "500", "--test-samples", "200"]) == 1
    shown = capsys.readouterr()
    assert "scikit-learn SVC" in shown.out
    assert "pip install 'parsimon[plot]'" in shown.err
    assert list(tmp_path.iterdir()) == []


def test_too_few_samples(capsys):
    with pytest.raises(SystemExit):
        demo.main(["--test-samples", "10"])
    assert "--test-samples must be at least 100" in capsys.readouterr().err
