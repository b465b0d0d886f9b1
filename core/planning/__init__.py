"""A plan without rows: its frame, every draw with its price, sizes and warnings."""
