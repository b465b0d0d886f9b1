"""The notice and the file name that mark rows without a privacy guarantee."""

NOT_PRIVATE = "Not private: each row is a blurred copy of a real row"
"""The notice on every screen, file and message."""

NOT_PRIVATE_CSV = "synthetic-NOT-PRIVATE.csv"
"""Name of the file with such rows. A private release writes ``synthetic.csv`` instead."""
