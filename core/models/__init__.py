"""Models, which methods return and which draw rows."""
