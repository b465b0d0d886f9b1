"""The published methods, by name. A new one joins with one file and one line here."""

from __future__ import annotations

from core.methods.base import Measured, Report, silent
from core.methods.independent import independent
from core.methods.mst import mst
from core.methods.prefair import prefair
from core.methods.prism import prism
from core.methods.privbayes import privbayes
from core.methods.privci import privci
from core.methods.workload import workload

METHODS = {
    "prism": prism, "privci": privci, "mst": mst, "prefair": prefair, "privbayes": privbayes,
    "independent": independent, "workload": workload,
}  # fmt: skip

__all__ = [
    "METHODS",
    "Measured",
    "Report",
    "independent",
    "mst",
    "prefair",
    "prism",
    "privbayes",
    "privci",
    "silent",
    "workload",
]
