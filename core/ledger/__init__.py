"""The ledger: what was released from which people, and what is left of their budget."""
