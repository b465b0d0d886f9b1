"""Text form of the cells in tables that are read or written."""

MISSING = ""
"""A missing cell."""
