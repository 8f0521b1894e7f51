"""Docstrings are written to be read in a terminal: here they become proper reStructuredText."""

import re

# A learned attribute in running text; what is quoted already, and the head of an entry, stay.
ATTRIBUTE = re.compile(r"(?<![\w`.:<>/])([A-Za-z]\w*_)(?![\w`({^])")
HEAD = re.compile(r"^\s*\w+(, \w+)*( : |$)")
ROLE = re.compile(r":(?:ref|term|doc):`([^`<]+?)(?:\s*<[^>]*>)?`")
# Formulas that come with scikit-learn's docstrings: MathJax would be fetched from another host.
MATH = re.compile(r":math:`([^`]+)`")
FRACTION = re.compile(r"\\frac\{(\w+)\}\{(\w+)\}")


def setup(app):
    app.connect("autodoc-process-docstring", rewrite, priority=100)
    return {"parallel_read_safe": True}


def rewrite(app, what, name, obj, options, lines):
    for i, line in enumerate(lines):
        line = ROLE.sub(r"\1", line)
        line = MATH.sub(lambda found: plain(found[1]), line)
        if head := HEAD.match(line):
            line = head[0] + ATTRIBUTE.sub(lambda name: name[1][:-1] + r"\_", line[head.end() :])
        elif ">>>" not in line:
            line = ATTRIBUTE.sub(r"``\1``", line)
        lines[i] = line


def plain(formula):
    text = FRACTION.sub(r"\1 / \2", formula).replace("^2", "²")
    return f"``{text}``"
