"""Conclusions from a release: honest intervals, effects that the drawing identifies, and a test of the drawing.
Everything here post-processes a release or the noisy counts that a caller passes in. Nothing reads private rows.
"""
