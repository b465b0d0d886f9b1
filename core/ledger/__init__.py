"""The ledger: the releases about each population, and its remaining budget."""
