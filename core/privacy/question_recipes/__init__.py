"""Questions and counts, with their hidden columns, sensitivity and cost, and the recipes that a curator answers."""
