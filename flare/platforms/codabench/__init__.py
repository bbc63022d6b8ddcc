"""What Codabench needs to evaluate submissions: a bundle to upload.

Where things are registered: settings of the site as fields of ``Competition`` in
``competition.py``; what a scoring program loads in ``packages.py``; errors in
``errors.py``. ``score.py`` is what the site runs.
"""
