"""What may be concluded from a release: honest intervals, effects through the drawing, a test of the drawing.

All of it is post-processing of what a release holds, or of noisy counts that are handed in: nothing here reads rows.
"""
