"""The published methods, by name. A new one joins with one file and one line here."""

from __future__ import annotations

from core.synthesizers.base import Measured, Report, silent
from core.synthesizers.independent import independent
from core.synthesizers.mst import mst
from core.synthesizers.prefair import prefair
from core.synthesizers.prism import prism
from core.synthesizers.privbayes import privbayes
from core.synthesizers.privci import privci

METHODS = {
    "prism": prism, "privci": privci, "mst": mst, "prefair": prefair, "privbayes": privbayes,
    "independent": independent,
}  # fmt: skip

__all__ = ["METHODS", "Measured", "Report", "independent", "mst", "prefair", "prism", "privbayes", "privci", "silent"]
