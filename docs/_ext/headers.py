"""The reference of the C++ core: what its headers declare and say of it, one page per folder."""

import textwrap
from pathlib import Path

from cpp_declarations import declarations

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
        text = f"# {name}/\n\n{about}\n\n" + "\n".join(section(each, headers) for each in files)
        write_if_changed(pages / f"{name}.md", text)
        names.append(name)
    toc = "\n".join(names)
    intro = (
        "# C++ reference\n\nWhat each header declares, in its own words: the comment above a class "
        "is its contract, and what is listed within it are its public members. All of it is in the "
        "namespace `parsimon`; what is in `parsimon::detail` is nobody's to use, and not listed."
        "\n\n```{toctree}\n:maxdepth: 2\n\n"
        f"{toc}\n```\n"
    )
    write_if_changed(pages / "index.md", intro)


def default_headers():
    import parsimon

    return Path(parsimon.get_include()) / "parsimon"


def section(path, headers):
    found = declarations(path.read_text(encoding="utf-8"))
    head = f"## {path.relative_to(headers.parent).as_posix()}\n\n"
    if not found:
        return head + "Nothing of its own: it includes others, or holds what these need.\n"
    return head + "\n".join(entry(each) for each in found)


def entry(declared):
    comment = f"```text\n{declared.comment}\n```\n\n" if declared.comment else ""
    title = f"**`{declared.kind} {declared.name}`**\n\n" if declared.kind else ""
    return f"{title}{comment}```{{code-block}} cpp\n:force:\n\n{listing(declared)}\n```\n"


def listing(declared, indent=""):
    """Return a declaration as code; a type with its members, and their comments."""
    if not declared.members:
        return wrapped(f"{declared.signature};", indent)
    lines = [wrapped(f"{declared.signature} {{", indent)]
    for member in declared.members:
        lines += [f"{indent}  // {line}" for line in member.comment.splitlines()]
        lines.append(listing(member, f"{indent}  "))
    return "\n".join([*lines, f"{indent}}};"])


def wrapped(signature, indent):
    options = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.fill(
        signature, 80, initial_indent=indent, subsequent_indent=f"{indent}    ", **options
    )


def write_if_changed(path, text):
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
