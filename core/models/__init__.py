"""Models, which methods return and from which rows are drawn."""
