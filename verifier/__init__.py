"""A checker for releases of Espalier that shares no code with Espalier. README.md explains each check."""
