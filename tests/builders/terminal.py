"""A terminal that keeps what is written."""

import io


class Terminal(io.StringIO):
    """A stdout that says it is a terminal."""

    def isatty(self):
        return True
