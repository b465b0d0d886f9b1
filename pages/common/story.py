"""The picture that summarises a sample, as shown on a page."""

from __future__ import annotations

from base64 import b64encode
from html import escape

import streamlit as st

from espalier.core.report import story


def show(sample: str, source: bool = True) -> None:
    """Show the picture of a sample, if it has one, and the source of its figures."""
    if (told := story.stories().get(sample)) is None:
        return
    picture = b64encode(story.svg(told).encode()).decode()
    st.html(
        f'<img src="data:image/svg+xml;base64,{picture}" alt="{escape(story.said(told))}" '
        f'style="width:100%;max-width:{story.WIDE}px;height:auto;border-radius:6px">'
    )
    st.caption(f"{told['said']} {story.SHIPPED} They do not describe your release." if source else told["said"])
