"""What an edition of FLARE asks for, read from a challenge file.

Where things are registered: metrics in ``METRICS`` of ``metrics.py``; formats of label
maps in ``FORMATS`` of ``formats.py``; keys of a challenge file as fields of
``Challenge`` in ``rules.py``; editions as files in ``editions/``.
"""
