"""Server for several people: its settings, jobs, limits, allow-list and events, and checks for its operator."""
