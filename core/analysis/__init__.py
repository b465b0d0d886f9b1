"""Conclusions from a release: honest intervals, effects identified by the drawing, and a test of the drawing.

Everything here is post-processing of a release or of noisy counts that a caller passes in. Nothing reads private rows.
"""
