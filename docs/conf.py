"""The site: Markdown pages, the reference from docstrings, and a gallery. ``make docs`` builds it.

A page loads nothing from elsewhere: no fonts, no scripts of other hosts, formulas as MathML.
"""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

project = "multimargin"
author = "multimargin developers"
copyright = "multimargin developers"
version = release = version_of("multimargin")
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "site_pages",
]
exclude_patterns = ["_build", "measured", "**/sg_execution_times.rst", "sg_execution_times.rst"]
nitpicky = True

# -- Markdown ---------------------------------------------------------------------------------------------
myst_enable_extensions = ["dollarmath", "deflist", "attrs_block"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 3

# -- the reference ----------------------------------------------------------------------------------------
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "inherited-members": True}
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# -- the gallery ------------------------------------------------------------------------------------------
sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"/plot_",
    "abort_on_example_error": True,
    "capture_repr": ("_repr_html_",),
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "download_all_examples": False,
    "remove_config_comments": True,
}

# -- how it looks -----------------------------------------------------------------------------------------
html_theme = "furo"
html_title = f"multimargin {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}
templates_path = ["_templates"]
pygments_style = "friendly"
pygments_dark_style = "native"
