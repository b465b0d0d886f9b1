"""Comparison of several releases, and the cost of a choice."""
