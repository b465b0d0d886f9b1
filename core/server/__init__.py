"""A server for several people: its settings, jobs, limits, allow-list, events, and what its operator can ask."""
