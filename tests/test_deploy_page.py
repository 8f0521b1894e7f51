"""The page on deployment: its code runs, and does what it says."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs" / "guide" / "deploy.md"
BLOCKS = re.findall(
    r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
)


@pytest.mark.usefixtures("plt")
def test_the_page_does_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in BLOCKS:
        exec(block, names)
    svc, smaller, report = (names[name] for name in ("svc", "smaller", "report"))
    assert "certified, at every x" in capsys.readouterr().out
    assert report.points_after == 150 < report.points_before == len(svc.support_)
    samples, labels = names["X"][1200:], names["y"][1200:]
    assert smaller.score(samples, labels) > svc.score(samples, labels) - 0.01
    assert "digits_predict(" in (tmp_path / "digits.h").read_text()
    assert (names["found"].samples >= 0).all()
    assert names["shares"].values.shape == (3, 64, 10)
