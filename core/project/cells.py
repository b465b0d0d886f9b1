"""The text form of cells, in a table that is read and in one that is written."""

MISSING = ""
"""A missing cell."""
