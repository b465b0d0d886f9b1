"""The privacy statement of a release: what is promised, what it rests on, and the digests of the released files."""
