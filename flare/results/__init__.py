"""What lies in RESULTS/TEAM: each file is written and read in one place here.

A module is named after its file, and its record is the register of keys or columns:
``MetricsFile`` in ``metrics_json.py`` (``metrics_reading.py`` reads it), ``CaseRecord``
in ``efficiency_csv.py``, ``Sample`` in ``traces_csv.py``, ``Settings`` and ``Session``
in ``measurement_json.py``, ``Limits`` in ``limits.py``, ``LedgerEntry``, ``Refusal``
and ``Flag`` in ``archives_csv.py``. A new file gets its schema by a line in
``scripts/make_schemas.py``.
"""
