"""The text form of cells, in tables that are read or written."""

MISSING = ""
"""A missing cell."""
