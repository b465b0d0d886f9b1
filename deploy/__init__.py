"""The kit that installs Espalier on a server; see README.md."""
