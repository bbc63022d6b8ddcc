"""The command line.

Where things are registered: a command is a file in ``commands/``, and no list names it;
who commands are for, in ``GROUPS`` of ``main.py``; options that have left, in ``LEFT``
of ``command.py``.
"""

try:
    import flare.common  # noqa: F401
except ImportError as error:  # said in one line, not below a traceback
    raise SystemExit(str(error)) from None
