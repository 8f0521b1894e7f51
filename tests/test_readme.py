"""The documents say what is true: code runs, commands exist, links lead somewhere."""

import os
import re
import runpy
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from bench.cli import build_parser as bench_parser
from parsimon import POLKClassifier, POLKRegressor
from parsimon._cli._main import build_parser
from parsimon.datasets import make_multidist

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


# What a block prints may stand below it.
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\nIt prints\n\n```text\n(?P<printed>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)


def python_blocks(document):
    text = document.read_text(encoding="utf-8")
    for size, less in LESS.items():
        text = text.replace(size, less)
    return [(found["code"], found["printed"]) for found in BLOCK.finditer(text)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_python_blocks_run_one_after_the_other(document, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    names = {}
    for number, (block, printed) in enumerate(python_blocks(document), start=1):
        exec(compile(block, f"{document.name}, block {number}", "exec"), names)
        said = capsys.readouterr().out
        assert printed is None or said == printed
        if (document, number) == (README_FILE, 1):
            assert f"It prints `{said.strip()}`." in README
    if document.name == "README.md":
        assert names["model"].score(names["X_test"], names["y_test"]) > 0.9


def blocks(document, language):
    text = document.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def test_every_block_of_code_is_run_by_some_test():
    """The plain ones below, those with a name by test_scale_page.py; the others are not run."""
    here = {"python", "py", "cpp", "sh", "cmake", "text", "bibtex"}
    elsewhere = {"python dask", "python ray", "python spark", "python statistics"}
    for document in DOCUMENTS:
        found = re.findall(r"^```(\w[^\n]*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
        assert set(found) <= here | (elsewhere if document.name == "scale.md" else set())


def test_the_pipeline_of_river_runs(capsys):
    pytest.importorskip("river")
    (block,) = blocks(ROOT / "docs" / "streams.md", "py")
    exec(compile(block, "streams.md, river", "exec"), {})
    assert float(re.search(r"Accuracy: ([\d.]+)%", capsys.readouterr().out)[1]) > 85


WITH_CPP = [ROOT / "README.md", ROOT / "docs" / "guide" / "cpp.md"]


@pytest.mark.parametrize("document", WITH_CPP, ids=lambda path: path.name)
def test_cpp_blocks_compile_and_say_what_python_says(document, tmp_path):
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    X, y = make_multidist(300, random_state=0)
    regressor = POLKRegressor(random_state=0).fit(X, X[:, 0])
    classifier = POLKClassifier(random_state=0).fit(X, y)
    regressor.save(tmp_path / "model.parsimon")
    classifier.save(tmp_path / "classifier.parsimon")

    (block,) = blocks(document, "cpp")
    lines = block.splitlines()
    body = "\n".join(line for line in lines if not line.startswith("#include"))
    numbers = ", ".join(map(repr, X[7].tolist()))
    program = f"""
        #include <iostream>
        #include <parsimon/predict.hpp>
        int main() {{
          const double x[] = {{{numbers}}};
          double y[1];
          {body}
          std::cout << " " << y[0];
        }}"""
    (tmp_path / "it.cpp").write_text(program, encoding="utf-8")
    include = ROOT / "cpp" / "include"
    build = [compiler, "-std=c++17", f"-I{include}", "it.cpp", "-o", "it"]
    subprocess.run(build, check=True, cwd=tmp_path)
    said = subprocess.run(
        [tmp_path / "it"], cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=True
    )
    label, value = said.stdout.split()
    assert label == str(classifier.predict(X[7:8])[0])
    assert float(value) == pytest.approx(regressor.predict(X[7:8])[0], rel=1e-5)


def commands(document):
    """Return the commands of a document's blocks for a shell, each without what it is piped to."""
    text = document.read_text(encoding="utf-8")
    indented = re.findall(r"(?:^|\n)((?: {4}(?:python -m|pip|make) [^\n]*\n)+)", text)
    for line in "\n".join([*blocks(document, "sh"), *indented]).splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = []
        for word in [*lexer, "|"]:
            if word in ("|", ">"):
                yield words
                words = []
            else:
                words.append(word)


def test_commands_are_those_that_there_are():
    make = (ROOT / "Makefile").read_text(encoding="utf-8")
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extras = re.findall(r"^(\w+) = \[", pyproject.split("[project.optional-dependencies]")[1], re.M)
    parsed = {}
    for document in [*DOCUMENTS, ROOT / "bench" / "README.md", ROOT / "CONTRIBUTING.md"]:
        for words in commands(document):
            kind = " ".join(words[:3])
            if kind == "python -m parsimon":
                build_parser().parse_args(words[3:])
            elif kind == "python -m bench":
                bench_parser().parse_args(words[3:])
            elif words[:1] == ["make"]:
                assert re.search(rf"^[\w -]*\b{words[1]}\b[\w -]*:", make, re.M), words
            elif words[:2] == ["pip", "install"]:
                for extra in re.findall(r"\[(.*?)\]", " ".join(words)):
                    assert set(extra.split(",")) <= set(extras), words
            else:
                continue
            parsed[kind] = parsed.get(kind, 0) + 1
    assert parsed["python -m parsimon"] >= 8
    assert parsed["python -m bench"] >= 10


@pytest.mark.usefixtures("plt")
def test_the_picture_of_readme_is_drawn_by_its_code(tmp_path):
    pytest.importorskip("river")
    code = runpy.run_path(str(ROOT / "docs" / "img" / "error_points.py"))
    X, y = make_multidist(400, random_state=0)
    code["draw"](tmp_path / "it.png", (X[:300], y[:300]), (X[300:], y[300:]), sizes=(5, 10))
    assert (tmp_path / "it.png").read_bytes().startswith(b"\x89PNG")


def test_first_example_is_short_and_streams():
    example, _ = python_blocks(ROOT / "README.md")[0]
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
