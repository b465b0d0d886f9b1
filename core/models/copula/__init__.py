"""Models of the private smooth-regression method, which draw rows from noisy one-way counts and noisy moments."""
