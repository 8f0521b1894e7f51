"""Pages that live outside docs/, because they are read in the repository as well.

Links to them, and to files that have no page, are written as they work there; here they lead to the
page of that file, or become its name.
"""

import re

PAGES = {
    "../README.md": "index.md",
    "../bench/README.md": "bench.md",
    "../CONTRIBUTING.md": "contributing.md",
    "../CHANGELOG.md": "changelog.md",
    "../cpp/examples": "guide/cpp.md",
    "../LICENSE": None,
    "../CITATION.cff": None,
}


def setup(app):
    app.connect("source-read", lead_here)
    return {"parallel_read_safe": True}


def lead_here(app, name, source):
    depth = name.count("/")

    def page(match):
        text, target, anchor = match["text"], match["target"], match["anchor"] or ""
        if name in ("bench", "contributing", "changelog"):
            # These have moved: what they call docs/x.md is beside them now.
            if target.startswith(("../docs/", "docs/")):
                return f"[{text}]({target.split('docs/', 1)[1]}{anchor})"
            if not target.startswith("../"):
                target = f"../{target}"
        key = target[3 * depth :] if target.startswith("../" * (depth + 1)) else target
        if key not in PAGES:
            return match[0] if not target.startswith("../" * (depth + 1)) else f"`{text}`"
        return f"[{text}]({'../' * depth}{PAGES[key]}{anchor})" if PAGES[key] else text

    link = r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>(?!https?:)[^)#\s]+)(?P<anchor>#[^)\s]+)?\)"
    source[0] = re.sub(link, page, source[0])
