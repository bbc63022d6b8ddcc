"""All that a person reads about results; computes means and what cases draw.

Where things are registered: a section or a figure of a page in the file of the page's
topic, such as ``evaluation.py`` or ``ranking/page.py``; parts of pages, and marks of
charts, in ``model.py``; figures and tables of a paper in ``paper/``.
"""
