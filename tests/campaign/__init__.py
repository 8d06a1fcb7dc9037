"""The scenario campaign: the same states and edits for this project and for the ways that people use instead.

    python -m tests.campaign --quick

Every scenario is run for real on a copy of the miniature checkout, once for each column. What is
right is decided by the compiler's preprocessor and by the built artifact, never by a column's word.
"""
