"""The version is stated once; what else names it agrees."""

import re
from pathlib import Path

import parsimon

ROOT = Path(__file__).parent.parent


def test_the_changelog_begins_with_this_version():
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert newest[1] == parsimon.__version__


def test_the_citation_names_this_version():
    assert f"\nversion: {parsimon.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
