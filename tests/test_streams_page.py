"""The page on streams: from file to plot in fifteen lines, and what it says of the result."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from bench import machine
from parsimon import POLKClassifier
from parsimon.datasets import make_deliveries
from parsimon.stream import StreamingPipeline, StreamingScaler, prequential, read_blocks

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "streams.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)


def test_it_takes_no_more_than_fifteen_lines():
    _, from_file_to_plot, *_ = BLOCKS
    assert len([line for line in from_file_to_plot.splitlines() if line.strip()]) <= 15
    assert "read_blocks" in from_file_to_plot
    assert "plot()" in from_file_to_plot


def write_csv(path, columns, outcome):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*columns, "outcome"])
        writer.writerows(zip(*columns.values(), outcome, strict=True))


@pytest.mark.slow
def test_the_page_says_what_happens(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    pytest.importorskip("matplotlib")
    names = {}
    for block in BLOCKS[:2]:
        exec(block, names)
    result = names["result"]
    assert result.summary["samples"] == 200_000
    found, *later = result.drift
    said = int(re.search(r"found, ([\d,]+)\s+samples after", PAGE)[1].replace(",", ""))
    assert 100_000 < found < 100_000 + 4 * said
    # While the model still learns.
    assert all(change < 105_000 for change in later)
    assert (tmp_path / "deliveries.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_all_of_the_page_runs(tmp_path, monkeypatch):
    """With a shorter file; what each part has left is there for the next."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    pytest.importorskip("matplotlib")
    names = {}
    for block in BLOCKS:
        exec(block.replace("200_000", "4_000").replace("100_000", "2_000"), names)
    assert names["told"].drift_.tolist() == [5000]
    assert names["detector"].predict([[0.0, 0.5, 0.0], [6.0, 0.0, 0.0]]).tolist() == [1, -1]


def test_class_weights_are_worth_what_the_page_says(capsys):
    (block,) = [block for block in BLOCKS if "class_weight in (None" in block]
    exec(block, {"POLKClassifier": POLKClassifier})
    found = [float(line.split()[1]) for line in capsys.readouterr().out.splitlines()]
    said = re.search(r"balanced accuracy of ([\d.]+), the second of\s+([\d.]+)", PAGE)
    assert np.allclose(found, [float(said[1]), float(said[2])], atol=0.02)


@pytest.mark.slow
def test_a_stream_is_as_good_as_a_batch_with_points_and_memory_that_stay(tmp_path):
    X, y = make_deliveries(200_000, random_state=0)
    write_csv(tmp_path / "deliveries.csv", X, y)
    blocks = read_blocks(tmp_path / "deliveries.csv", target="outcome", rows=1000)
    resident = []

    def watched():
        for number, block in enumerate(blocks):
            if number % 10 == 0:
                resident.append(machine.resident_bytes())
            yield block

    model = StreamingPipeline(POLKClassifier(random_state=0))
    result = prequential(model, watched(), window=1000, classes=["late", "on time"])
    ours = result.curves["accuracy"][-50:].mean()

    encoded = StreamingScaler().fit_transform(X)
    first, last = slice(0, 150_000), slice(150_000, None)
    batch = HistGradientBoostingClassifier(random_state=0).fit(encoded[first], y[first])
    theirs = batch.score(encoded[last], y[last])
    assert ours > theirs - 0.01

    # The cap on points, and hardly any more of them in the last quarter.
    assert result.points.max() <= 2200
    assert result.points[-1] < 1.1 * result.points[-50]
    # Nothing is kept of the last quarter; after the change half way points, and so memory, still
    # grow.
    assert resident[-1] < 1.05 * resident[3 * len(resident) // 4]
    said = re.search(r"accuracy of ([\d.]+) %.*?gets\s+([\d.]+) %", PAGE, flags=re.DOTALL)
    assert np.allclose([100 * ours, 100 * theirs], [float(said[1]), float(said[2])], atol=0.3)
