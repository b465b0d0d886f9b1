"""A server for several people: its settings, jobs, limits, allow-list, events, and its operator's checks."""
