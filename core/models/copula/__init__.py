"""The private smooth-regression method: noisy one-way counts, noisy moments, and draws made from them."""
