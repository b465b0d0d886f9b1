"""Several releases side by side, and the cost of a choice."""
