"""The documents say what is true: their Python runs, their links lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README_FILE = ROOT / "README.md"
README = README_FILE.read_text(encoding="utf-8")
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


# docs/test_site.py follows links to these in the site.
MADE_WITH_THE_SITE = (
    "parsimon.",
    "gallery/",
    "../gallery/",
    "../cpp_reference/",
    "../contributing.md",
)

# Sizes of which less is enough to see that the code runs; test_streams_page.py takes all of it.
LESS = {"200_000": "4_000", "100_000": "2_000"}


def python_blocks(document):
    text = document.read_text(encoding="utf-8")
    for size, less in LESS.items():
        text = text.replace(size, less)
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_python_blocks_run_one_after_the_other(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names = {}
    for number, block in enumerate(python_blocks(document), start=1):
        exec(compile(block, f"{document.name}, block {number}", "exec"), names)
    if document.name == "README.md":
        assert names["model"].score(names["X_test"], names["y_test"]) > 0.9


def test_first_example_is_short_and_streams():
    example = python_blocks(ROOT / "README.md")[0]
    assert len([line for line in example.splitlines() if line.strip()]) <= 10
    assert "partial_fit" in example


def test_commands_come_first():
    top = README.split("\n## ")[0]
    assert "make demo" in top
    assert "make test" in top


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere_and_paths_are_no_machines_own(document):
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        made = document != README_FILE and target.startswith(MADE_WITH_THE_SITE)
        assert made or target.startswith("https://") or (document.parent / target).exists(), target
    assert not re.search(r"/(home|work|tmp|root|Users)/", text)
