"""The lesions of a case: components of two masks, by a named definition.

`flare.challenge.lesions` has the definitions, and `flare.challenge.lesion_metrics` what
is made of the lesions of a case.

- ``runs.py``: masks as runs along x, their neighbours and components;
- ``pairs.py``: which lesions of the reference and of the prediction belong together;
- ``case.py``: all lesions of a case, which is where scoring enters.
"""
