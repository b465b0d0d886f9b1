"""The two-stage method of Liu et al. It is NOT private: each row that it makes is a blurred real person."""
