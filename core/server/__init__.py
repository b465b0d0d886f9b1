"""A server for several people: settings, jobs, limits, allow-list, events, and checks for the operator."""
