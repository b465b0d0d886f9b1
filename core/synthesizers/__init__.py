"""The published methods, by name. A new one joins with one file and one line here."""

from __future__ import annotations

from core.synthesizers.base import Measured, Report, silent
from core.synthesizers.independent import independent
from core.synthesizers.mst import mst
from core.synthesizers.prefair import prefair
from core.synthesizers.prism import prism
from core.synthesizers.privci import privci

METHODS = {"prism": prism, "privci": privci, "mst": mst, "prefair": prefair, "independent": independent}

__all__ = ["METHODS", "Measured", "Report", "independent", "mst", "prefair", "prism", "privci", "silent"]
