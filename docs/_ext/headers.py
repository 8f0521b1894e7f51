"""The reference of the C++ core: what its headers say of what they hold, one page per folder."""

import re
from pathlib import Path

ROOM = {
    "": (
        "parsimon",
        "What a program includes: the whole core, predictions alone, and what all headers share.",
    ),
    "algorithm": ("algorithm", "One page per algorithm, on the driver `online.hpp`."),
    "density": ("density", "Domains and integrals of positive functions."),
    "io": ("io", "The model file."),
    "kernel": ("kernel", "What functions are made of."),
    "linalg": (
        "linalg",
        "Products, triangular matrices, rotations; all vector code and all threads.",
    ),
    "loss": ("loss", "What functions are judged by."),
    "memory": ("memory", "Buffers that only grow, so that steps allocate nothing."),
    "rkhs": ("rkhs", "The one engine: dictionary, Gram factor, newcomers, compression."),
    "schedule": ("schedule", "Step sizes and budgets."),
}
# A comment at the margin, directly above a class, a struct, a function or a type.
CONTRACT = re.compile(
    r"(?P<comment>(?:^//[^\n]*\n)+)"
    r"(?P<template>template\s*<[^>]*>\s*)?"
    r"(?P<what>(?:class|struct|enum class)\s+\w+|[\w:<>&*]+\s[^;{]*?\w+[^;{]*)"
    r"\s*[:;{=]",
    re.MULTILINE,
)


def setup(app):
    app.add_config_value("parsimon_headers", None, "env")
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True}


def write_pages(app):
    headers = Path(app.config.parsimon_headers or default_headers())
    pages = Path(app.srcdir) / "cpp_reference"
    pages.mkdir(exist_ok=True)
    names = []
    for folder, (name, about) in ROOM.items():
        files = sorted((headers / folder).glob("*.hpp" if not folder else "**/*.hpp"))
        sections = [section(path, headers) for path in files]
        text = f"# {name}/\n\n{about}\n\n" + "\n".join(each for each in sections if each)
        write_if_changed(pages / f"{name}.md", text)
        names.append(name)
    toc = "\n".join(names)
    intro = (
        "# C++ reference\n\nWhat each header holds, in its own words: the comment above a class is "
        "its contract. All of it is in the namespace `parsimon`.\n\n```{toctree}\n:maxdepth: 2\n\n"
        f"{toc}\n```\n"
    )
    write_if_changed(pages / "index.md", intro)


def default_headers():
    import parsimon

    return Path(parsimon.get_include()) / "parsimon"


def section(path, headers):
    code = path.read_text(encoding="utf-8")
    parts = []
    for match in CONTRACT.finditer(code):
        name = declared(match["what"])
        words = "\n".join(line[2:].removeprefix(" ") for line in match["comment"].splitlines())
        if name and not words.startswith(("NOLINT", "clang-format", "--")):
            parts.append(f"**`{name}`**\n\n```text\n{words}\n```\n")
    if not parts:
        return ""
    return f"## {path.relative_to(headers.parent).as_posix()}\n\n" + "\n".join(parts)


def declared(what):
    """Return how something is called, without what a program does not write."""
    if kind := re.match(r"(class|struct|enum class)\s+(\w+)", what):
        return f"{kind[1]} {kind[2]}"
    if call := re.search(r"([\w:]+)\s*\(", what):
        return f"{call[1]}()"
    if alias := re.match(r"using\s+(\w+)", what):
        return f"using {alias[1]}"
    return None


def write_if_changed(path, text):
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
