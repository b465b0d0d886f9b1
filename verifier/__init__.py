"""A checker of releases by Espalier that shares no code with it. README.md explains each check."""
