"""Planning without rows: the frame, every draw with its price, sizes and warnings."""
