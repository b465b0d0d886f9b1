"""Privacy statement of a release: claims, assumptions, and digests of the released files."""
