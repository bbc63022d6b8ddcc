"""External evaluation: submissions are claimed, measured here, and answered.

Where things are registered: steps of a submission in ``Step`` of ``journal.py``; where
submissions come from, as a ``Source`` of ``source.py``.
"""
