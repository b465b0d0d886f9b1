"""An SVG picture on a page. It adapts to the theme and width, and can be saved as SVG or, by the browser, as PNG."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st

_HTML = '<div class="picture"></div><div class="row"><button>Save as SVG</button> <button>Save as PNG</button></div>'
_CSS = """
.picture { width: 100%; min-height: 20px; overflow-x: auto; }
.picture:focus-visible { outline: 3px solid var(--st-primary-color); outline-offset: 2px; }
.row { display: flex; gap: .5rem; margin-top: .4rem; }
button { font: inherit; font-size: .85rem; color: var(--st-text-color); background: transparent; cursor: pointer;
  border: 1px solid var(--st-border-color, #8796a5); border-radius: .5rem;
  padding: .3rem .7rem; }
button:hover { border-color: var(--st-primary-color); }
button:focus-visible { outline: 3px solid var(--st-primary-color); outline-offset: 2px; }
"""


@cache
def _component() -> Any:
    script = Path(__file__).with_suffix(".js").read_text("utf-8")
    return st.components.v2.component("espalier_svg", js=script, css=_CSS, html=_HTML)


def show(svg: str, key: str, name: str, narrow: str = "", below: int = 600) -> None:
    """Show ``svg``, or ``narrow`` below a width of ``below`` pixels; ``name`` is used for saved files."""
    _component()(key=key, data={"wide": svg, "narrow": narrow, "below": below, "name": name})
