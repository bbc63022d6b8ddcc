"""What any program could use; it knows no challenge, no case and no team.

Where things are registered: kinds of errors, by who can repair them, in ``errors.py``
(an error itself is a class in ``errors.py`` of the room that raises it, with the next
``code``); how an option is declared, in ``options.py``; types and bounds of values in
files, in ``schema.py``.
"""

import sys

if sys.platform == "win32":  # which has neither fcntl nor resource: locks and limits
    raise ImportError("flare needs Linux, macOS or WSL 2 (wsl --install): run it there")
