"""A tiny program that does the same work on every computer, to tell how fast it is.

It is written byte by byte, like those of `flare.measuring.tiny_programs`. In each round
it times two kinds of work, one after the other, and writes how long they took:

- integers: a chain of 17.5 million multiplications, each of which needs the one before
- memory: 64 MiB are read and written four times, a word in each line of 64 bytes

It runs in one thread. A number is written as 16 letters, A for 0 to P for 15, and a
line end; it is processor time in nanoseconds. So whatever else runs on the computer
adds nothing, but for what it does to the caches and to the clock of the processor.
"""

from __future__ import annotations

from flare.measuring.tiny_programs import elf_program

ROUNDS = 20
"""So often both kinds of work are done."""

MEMORY_BYTES = 64 * 2**20
"""What is read and written: more than most processors can keep near, and little enough
for a container whose memory is limited."""

_LETTERS = 16
"""Of a number."""

_CODE = (
    # mmap: MEMORY_BYTES, to be read and written, private; r12 = where they are
    "b809000000 31ff be00000004 ba03000000 41ba22000000 49c7c0ffffffff 4531c9 0f05",
    "4989c4",
    # madvise: no huge pages, of which there are more or fewer from day to day
    "4889c7 ba0f000000 b81c000000 0f05",
    # each page is written once, so that no time is taken while they are given out
    "b900008000 4c89e7 31c0 f348ab",
    # ebx = ROUNDS; r14 = room for a number
    "bb14000000 4883ec20 4989e6",
    # a round: r13 = now
    "e859000000 4989c5",
    # integers: rcx = 17,500,000; rax = rax * 69,069 + rcx, until rcx is 0; report
    "b960070b01 b801000000 bacd0d0100",
    "480fafc2 4801c8 48ffc9 75f4 e851000000",
    # r13 = now; memory: edx = 4 times, each line of 64 bytes; report
    "e831000000 4989c5 ba04000000",
    "4c89e6 b900001000 480116 4883c640 ffc9 75f5 ffca 75e9 e828000000",
    # the next round, or exit
    "ffcb 75ab 31ff b83c000000 0f05",
    # now: clock_gettime(CLOCK_THREAD_CPUTIME_ID); rax = s * 1,000,000,000 + ns
    "b8e4000000 bf03000000 4c89f6 0f05 49690600ca9a3b 49034608 c3",
    # report: rax = now - r13, as letters from its highest four bits on
    "e8e0ffffff 4c29e8 4c89f6 b910000000",
    "48c1c004 89c2 83e20f 83c241 8816 48ffc6 ffc9 75eb",
    # a line end; write it to stdout
    "c6060a 4c89f6 ba11000000 bf01000000 b801000000 0f05 c3",
)


def calibration_program() -> bytes:
    """The program, for Linux on x86-64."""
    return elf_program(bytes.fromhex("".join(_CODE)))


def read_times(written: bytes) -> tuple[list[float], list[float]]:
    r"""Seconds that integers and memory took in each round.

    Parameters
    ----------
    written : bytes
        All that the program has written to stdout.

    Raises
    ------
    ValueError
        If it is anything else than the program writes.

    Examples
    --------
    One number of 27 nanoseconds, 1 * 16 + 11, in all places:

    >>> integers, memory = read_times(20 * (b"A" * 14 + b"BL" + b"\n") * 2)
    >>> len(integers), len(memory), integers[0]
    (20, 20, 2.7e-08)
    """
    lines = written.splitlines()
    if len(lines) != 2 * ROUNDS or any(len(line) != _LETTERS for line in lines):
        message = f"{len(lines)} lines instead of {2 * ROUNDS}, or other ones"
        raise ValueError(message)
    times = [_number(line) / 1e9 for line in lines]
    return times[::2], times[1::2]


def _number(letters: bytes) -> int:
    """A number that is written as letters."""
    digits = [letter - ord("A") for letter in letters]
    if any(not 0 <= digit <= 15 for digit in digits):
        message = "a letter beyond P"
        raise ValueError(message)
    return sum(digit << 4 * place for place, digit in enumerate(reversed(digits)))
