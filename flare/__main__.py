"""``python -m flare`` is the same as ``flare``."""

from flare.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
