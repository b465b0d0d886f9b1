"""Models that methods return and from which rows are drawn."""
