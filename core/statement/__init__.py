"""The privacy statement of a release: its claims, its assumptions, and the digests of the released files."""
