"""What a C++ header declares for others to use: names, signatures, and the comments above them.

It reads headers that clang-format has laid out, and is no parser of C++: a body begins with a brace
that has a space before it, and a comment belongs to what stands directly below.
"""

import re
from dataclasses import dataclass, field

# Comments, strings and characters may hold braces, and lines of the preprocessor mean nothing here.
OPAQUE = re.compile(
    r"//[^\n]*|/\*.*?\*/"
    r'|R"\(.*?\)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<!\w)'(?:\\.|[^'\\\n])'"
    r"|^[ ]*#(?:\\\n|[^\n])*",
    re.DOTALL | re.MULTILINE,
)
TYPE = re.compile(
    r"(?:template\s*<.*>\s*)?(?P<what>class|struct|enum class|enum|union)\s+(?P<name>\w+)",
    re.DOTALL,
)
NOT_SHOWN = ("friend ", "static_assert", "namespace ", "extern ")


@dataclass
class Declaration:
    """A function, type, alias or constant; of a type, with its public members."""

    signature: str
    comment: str
    kind: str = ""  # class, struct, enum ...; nothing for what is no type
    name: str = ""
    members: list["Declaration"] = field(default_factory=list)


def declarations(code):
    """Return what is declared outside of ``namespace detail`` and of namespaces without a name."""
    masked = OPAQUE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), code)
    return list(_in_scope(code, masked, 0, len(masked), ""))


def _in_scope(code, masked, at, end, kind):
    public = kind != "class"
    while at < end:
        if masked[at] in " \n;":
            at += 1
            continue
        if label := re.compile(r"(public|protected|private):").match(masked, at):
            public, at = label[1] == "public", label.end()
            continue
        stop, body, after = _extent(masked, at, end)
        text = masked[at:stop]
        if text.startswith(("namespace", "inline namespace")) and body is not None:
            name = re.match(r"(?:inline )?namespace\s*([\w:]*)", text)[1]
            if name and "detail" not in name.split("::"):
                yield from _in_scope(code, masked, body + 1, after - 1, "")
        elif public and not text.startswith(NOT_SHOWN):
            yield _declaration(code, masked, at, stop, body, after)
        at = after


def _declaration(code, masked, at, stop, body, after):
    signature = re.sub(r"\s+", " ", OPAQUE.sub(_without_comments, code[at:stop]))
    signature = signature.replace("( ", "(").strip()
    found = Declaration(signature, _comment_above(code, at))
    if (what := TYPE.match(masked, at, stop)) and body is not None:
        found.kind, found.name = what["what"], what["name"]
        if found.kind.startswith("enum"):
            values = re.sub(r"\s+", " ", masked[body + 1 : after - 1]).strip(" ,")
            found.signature += f" {{ {values} }}"
        else:
            found.members = list(_in_scope(code, masked, body + 1, after - 1, found.kind))
    return found


def _without_comments(found):
    return "" if found[0].startswith(("//", "/*")) else found[0]


def _extent(masked, at, end):
    """Return where a declaration's head ends, where its braces begin if it has any, and its end."""
    depth, head = 0, None
    for i in range(at, end):
        letter = masked[i]
        depth += (letter in "([") - (letter in ")]")
        if depth:
            continue
        if letter == ";":
            return (i if head is None else head), None, i + 1
        if letter == ":" and head is None and _begins_initializers(masked, at, i):
            head = i
        elif letter == "{":
            close = _closing(masked, i)
            if masked[i - 1] not in " \n" or masked[at:i].rstrip().endswith("="):
                # A value in braces: what it belongs to ends with a semicolon, or goes on.
                if head is None:
                    return i, None, masked.index(";", close) + 1
                return head, *_body(masked, close)
            return (i if head is None else head), i, close
    return end, None, end


def _body(masked, at):
    """Return where the body after a value in braces, among initializers, begins and ends."""
    depth = 0
    while True:
        letter = masked[at]
        depth += (letter in "([") - (letter in ")]")
        if letter == "{":
            close = _closing(masked, at)
            if depth == 0 and masked[at - 1] in " \n":
                return at, close
            at = close
        else:
            at += 1


def _begins_initializers(masked, at, colon):
    around = masked[colon - 1 : colon + 2]
    return around == " : " and "(" in masked[at:colon] and masked[at:colon].count("?") == 0


def _closing(masked, opening):
    depth = 0
    for i in range(opening, len(masked)):
        depth += (masked[i] == "{") - (masked[i] == "}")
        if depth == 0:
            return i + 1
    raise ValueError("A brace of this header has no partner.")


def _comment_above(code, at):
    lines = code[: code.rfind("\n", 0, at) + 1].splitlines()
    comment = []
    while lines and lines[-1].strip().startswith("//"):
        comment.insert(0, lines.pop().strip()[2:].removeprefix(" "))
    words = "\n".join(comment)
    return "" if words.startswith(("NOLINT", "clang-format", "--")) else words
