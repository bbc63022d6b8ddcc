"""Makes an order out of many teams' results, and says how sure it is.

Where things are registered: ranking schemes in ``_all_schemes`` and ``_one_change`` of
``sensitivity.py``; rules for ties and missing results in ``Ties`` and ``MissingRule``
of ``rules.py``; keys of ranking.json in ``RankingFile`` of ``ranking_json.py``.
"""
