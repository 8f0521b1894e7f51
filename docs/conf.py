"""How the site is made: `make docs` copies this folder to build/docs-source and runs Sphinx."""

import sys
from pathlib import Path

import parsimon

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE / "_ext"))

project = "parsimon"
author = "parsimon developers"
copyright = "parsimon developers, BSD 3-Clause"  # noqa: A001
version = release = parsimon.__version__

# No intersphinx: inventories of other projects come from their hosts, and this builds without a
# network. Docstrings say "array-like" and "ndarray" in words, which link nowhere.
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "docstrings",
    "headers",
    "outside",
]
templates_path = ["_templates"]
exclude_patterns = ["examples"]

html_theme = "pydata_sphinx_theme"
html_title = "parsimon"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": []}
html_show_sourcelink = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
# What the classes of other packages bring along.
autosummary_context = {"left_out": ["__init__", "get_metadata_routing", "clone", "mutate"]}
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
# The tables of a benchmark are on its page as the command wrote them, under headings of their own.
suppress_warnings = ["config.cache", "myst.header"]

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    # The last line of an example is code, not something to show.
    "capture_repr": (),
    "image_scrapers": ("moving",),
    "min_reported_time": 2,
    "abort_on_example_error": True,
    "write_computation_times": False,
}
