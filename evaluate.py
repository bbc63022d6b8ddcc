"""Entry point of the grand-challenge container: the same as ``flare evaluate``."""

import sys

from flare.cli import main

if __name__ == "__main__":
    raise SystemExit(main(["evaluate", *sys.argv[1:]]))
