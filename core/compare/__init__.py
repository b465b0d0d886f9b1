"""Several releases side by side, and what a choice cost."""
