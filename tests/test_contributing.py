"""CONTRIBUTING.md shows code that is compiled and tested, word for word."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_examples_are_those_that_the_cpp_tests_compile():
    tested = (ROOT / "cpp" / "tests" / "test_extending.cpp").read_text()
    shown = re.findall(r"```cpp\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)
    assert len(shown) == 3
    for name, code in zip(("kernel", "loss", "algorithm"), shown, strict=True):
        assert f"// [{name}]\n{code}// [{name}]\n" in tested
        assert code.count("\n") < 50  # a page


def test_the_folders_that_it_names_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    core = ROOT / "cpp" / "include" / "parsimon"
    for name in ("linalg", "kernel", "loss", "schedule", "density", "rkhs", "algorithm", "io"):
        assert f"{name}/`" in text
        assert (core / name).is_dir()
