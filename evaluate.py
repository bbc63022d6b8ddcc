"""Entry point of the grand-challenge container: the same as ``flare evaluate``."""

try:
    from flare.__main__ import end_at_interrupt

    if __name__ == "__main__":
        end_at_interrupt()
    from flare.common.environment import importing

    with importing():
        from flare.cli.console import end
        from flare.cli.main import main_evaluate

    if __name__ == "__main__":
        end(main_evaluate())
except ModuleNotFoundError as error:
    if str(error.name).startswith("flare"):
        raise
    line = f"evaluate.py: the Python package {error.name} is not installed."
    line += " Run ./demo.sh once, then: .venv/bin/python evaluate.py"
    raise SystemExit(line) from None
