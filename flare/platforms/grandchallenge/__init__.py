"""What grand-challenge.org does around an evaluation, on this computer.

Where things are registered: settings of a phase as fields of ``Phase`` in ``phase.py``;
columns of the leaderboard in ``BoardRow`` of ``flare/platforms/leaderboard.py``; which
addresses of the platform are asked, in ``client.py`` and the files that call it; errors
of exchanges with it in ``errors.py``.
"""
