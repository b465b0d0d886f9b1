"""Private evaluation: judging a release on held-out people, at a price."""
