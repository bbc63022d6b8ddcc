"""Answers in tables and JSON: read, matched with their references, and scored.

Data flows from files (`tables`) to a row for each case (`sheets`), to the values of
their cells (`cells`, `boxes`), to what a case gives (`pairs`, `boxes`), and to what is
made of all cases (`agreement`). Kinds are registered in ``KINDS`` of
``flare/challenge/answers.py``, metrics in ``ANSWER_METRICS`` of
``flare/challenge/metrics.py``.
"""
