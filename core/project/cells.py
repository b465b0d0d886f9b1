"""How cells are written, in a table that comes in and in one that goes out."""

MISSING = ""
"""A missing cell."""
