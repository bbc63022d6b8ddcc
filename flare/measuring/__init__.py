"""Runs teams' images on CTs: predictions, running times and GPU memory come out.

Where things are registered: engines in ``ENGINES`` of ``engines/interface.py``; limits
of a container in ``Limits`` of ``flare/results/limits.py``; columns of efficiency.csv
in ``CaseRecord`` of ``flare/results/efficiency_csv.py``; options in ``options.py``;
what is read while a container runs, in ``sampling.py``.
"""
