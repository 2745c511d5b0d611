"""What Sphinx is told about the site; `guide.build` runs it."""

from __future__ import annotations

from pathlib import Path

from reticent import __version__

HERE = Path(__file__).parent

project = "reticent"
author = "the authors of reticent"
version = release = __version__
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "guide.autodoc_hooks",
    "guide.navigation",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
root_doc = "index"

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 4
myst_dmath_double_inline = True

autosummary_generate = True
autosummary_imported_members = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
maximum_signature_line_length = 80
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_attr_annotations = False
napoleon_custom_sections = [
    "Guarantee",
    "Utility",
    "Runtime",
]
default_role = "code"

templates_path = [str(HERE / "templates")]
html_theme = "furo"
html_title = "reticent"
html_static_path = [str(HERE / "static")]
html_css_files = ["site.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_show_sourcelink = False
# A page that is opened from disk may not fetch others, which excerpts of hits would need.
html_show_search_summary = False
html_search_scorer = str(HERE / "scorer.js")
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"

# One file that holds MathJax whole: pages need no network, and open from disk.
mathjax_path = "tex-svg.js"
mathjax3_config = {"options": {"enableMenu": False}, "svg": {"fontCache": "local"}}
