"""Scores a submission against reference labels: all that the container needs.

Where things are registered: formats of label maps in ``FORMATS`` of
``flare/challenge/formats.py``, and metrics in ``METRICS`` of
``flare/challenge/metrics.py``; errors of a submission in ``errors.py``, by the order of
their codes; options that change a result in ``EvaluationOptions`` of ``options.py``.
A rule of scoring is applied in ``scoring/case.py``, that for NSD's tolerances, too; how
surfaces are compared by a tolerance is a matter of ``metrics/``.
"""
