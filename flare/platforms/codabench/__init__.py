"""What Codabench needs to evaluate submissions: a bundle to upload.

Where things are registered: settings of the site in ``template/``, and those that an
evaluation goes by as fields of ``Competition`` in ``competition.py``; what a scoring
program loads in ``packages.py``. ``score.py`` is what the site runs.
"""
