"""The program ``flare``, which ``python -m flare`` starts, too."""

import gc
import os
import signal

# NumPy starts threads for linear algebra, of which there is none here, when it is
# imported: they wait busily, a tenth of a second of processor time for each process.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def end_at_interrupt() -> None:
    """Let Ctrl-C end this process at once, with its status and without a traceback.

    Imports take most of the first second, and leave nothing to tidy up; `run_command`
    lets Ctrl-C raise while a command runs. Where it is ignored, it stays ignored.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))


def main() -> int:
    """Run a command; the result is its exit status."""
    end_at_interrupt()
    from flare.cli import main as cli  # not at the top: Ctrl-C would find it there

    status = cli.main()
    # Python would look for objects in cycles before it ends, a twentieth of a second.
    gc.freeze()
    return status


if __name__ == "__main__":
    raise SystemExit(main())
