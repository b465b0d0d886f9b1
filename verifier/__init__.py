"""A checker for Espalier releases that shares no code with Espalier. README.md explains each check."""
