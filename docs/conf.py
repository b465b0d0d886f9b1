"""Sphinx settings of the documentation site: `python -m docs.site` builds it into `build/site`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from espalier import __version__

project = "Espalier"
author = "The Espalier authors"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "docs/index"
include_patterns = [
    "*.md",
    "docs/**.md",
    "benchmarks/README.md",
    "verifier/README.md",
    "deploy/README.md",
    "sample_data/README.md",
]
exclude_patterns = ["build", ".venv"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # a page may begin below the first level
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_class_signature = "separated"

html_theme = "furo"
html_title = f"Espalier {version}"
html_copy_source = False
html_show_sourcelink = False
html_static_path = ["../.images"]
html_theme_options = {"source_view_link": "", "top_of_page_buttons": []}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"


MENDED = {
    'role="heading"><span class="caption-text">': 'role="heading" aria-level="2"><span class="caption-text">',
    '<div class="highlight"><pre>': '<div class="highlight"><pre tabindex="0">',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
}
"""Features that the theme lacks: the level of a heading, and wide blocks that a keyboard can scroll."""


def mend(app: Any, failed: Exception | None) -> None:
    """Adapt the written pages, so that keyboards and screen readers can use them."""
    if failed is None:
        for page in Path(app.outdir).rglob("*.html"):
            text = page.read_text("utf-8")
            for old, new in MENDED.items():
                text = text.replace(old, new)
            page.write_text(text, "utf-8")


def setup(app: Any) -> None:
    """Set up the extension; Sphinx calls this."""
    app.connect("build-finished", mend)
