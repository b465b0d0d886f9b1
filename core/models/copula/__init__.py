"""The private smooth-regression method: rows drawn from noisy one-way counts and noisy moments."""
