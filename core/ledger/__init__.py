"""Ledger of the releases about each population and of its remaining budget."""
