"""What any program could use; it knows no challenge, no case and no team.

Where things are registered: kinds of errors, by who can repair them, in ``errors.py``
(an error itself is a class in ``errors.py`` of the room that raises it, with the next
``code``); how an option is declared, in ``options.py``; types and bounds of values in
files, in ``schema.py``.
"""
