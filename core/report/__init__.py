"""``report.html`` and the dataset card, rendered from the facts of ``release.json`` alone."""
