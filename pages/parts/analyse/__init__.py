"""Parts of the Analyse page."""
