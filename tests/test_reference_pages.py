"""The reference: all that is public is listed, and C++ headers are read as they are meant."""

import importlib
import inspect
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HEADERS = ROOT / "cpp" / "include" / "parsimon"
MODULES = (
    "compression",
    "datasets",
    "distributed",
    "explain",
    "export",
    "goodness_of_fit",
    "kernels",
    "metrics",
    "plotting",
    "stream",
)
# Listed where they are defined.
TWICE = {"compression.compress", "stream.PrequentialDisplay"}

declarations = runpy.run_path(str(ROOT / "docs" / "_ext" / "cpp_declarations.py"))["declarations"]


def test_all_that_is_public_in_python_is_listed():
    text = (ROOT / "docs" / "api.rst").read_text(encoding="utf-8")
    listed = set(re.findall(r"^   ([\w.]+)$", text, re.MULTILINE))
    for module in ("", *MODULES):
        found = importlib.import_module(f"parsimon.{module}".rstrip("."))
        for name in found.__all__:
            full = f"{module}.{name}".lstrip(".")
            if inspect.ismodule(getattr(found, name)) or name == "__version__" or full in TWICE:
                continue
            assert full in listed


def test_public_members_have_their_comments_and_private_ones_are_left_out():
    (found,) = declarations(
        """
#pragma once
namespace parsimon {

// What it holds.
class Thing : public Other {
 public:
  explicit Thing(int size, double rate = {}) : size_(size), kept_{rate} { check(); }

  // A brace in a text: nothing.
  std::string name() const { return "}{"; }
  virtual ~Thing() = default;

 private:
  void check() const;
  int size_ = 0;
  Kept kept_{1};
};

namespace detail {
void hidden();
}

}  // namespace parsimon
"""
    )
    assert (found.kind, found.name, found.comment) == ("class", "Thing", "What it holds.")
    assert [(each.signature, each.comment) for each in found.members] == [
        ("explicit Thing(int size, double rate = {})", ""),
        ("std::string name() const", "A brace in a text: nothing."),
        ("virtual ~Thing() = default", ""),
    ]


def test_functions_structs_and_enumerations_are_declared_as_they_stand():
    found = declarations(
        """
namespace parsimon::linalg {
// Adds.
template <typename T>
T add(const T& a,
      const T& b) {
  if (a) { return b; }
  return a + b;
}
enum class Side { kLeft, kRight };
struct Pair {
  int first = 0, second{1};
};
using Index = std::ptrdiff_t;
inline constexpr int kBlock = 4;
}
"""
    )
    assert [each.signature for each in found] == [
        "template <typename T> T add(const T& a, const T& b)",
        "enum class Side { kLeft, kRight }",
        "struct Pair",
        "using Index = std::ptrdiff_t",
        "inline constexpr int kBlock = 4",
    ]
    assert found[0].comment == "Adds."


@pytest.mark.parametrize("path", sorted(HEADERS.rglob("*.hpp")), ids=lambda path: path.stem)
def test_every_header_can_be_read(path):
    code = path.read_text(encoding="utf-8")
    found = declarations(code)
    names = {each.name for each in found if each.kind}
    outside = re.split(r"^namespace (?:[\w:]*::)?detail", code, flags=re.MULTILINE)[0]
    for name in re.findall(r"^(?:class|struct) (\w+)[^;]*\{$", outside, re.MULTILINE):
        assert name in names
    for each in found:
        for declared in (each, *each.members):
            assert declared.signature.count("(") == declared.signature.count(")")
            assert "return " not in declared.signature
