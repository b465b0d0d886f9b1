"""Models of the private smooth-regression method, which generate rows from noisy one-way counts and moments."""
