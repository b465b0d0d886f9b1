"""Espalier: synthetic tables under differential privacy that respect what a domain expert knows."""

from pathlib import Path

_HERE = Path(__file__).resolve().parent
if not (_HERE / "core").is_dir():  # a clone without symbolic links: `core` and `pages` are next to this folder
    __path__.append(str(_HERE.parent))
