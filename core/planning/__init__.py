"""Planning without rows: the frame, every draw with its price, and the sizes and warnings of a plan."""
