"""Private evaluation: judge a release on held-out people, at a cost in ρ."""
