"""A question at a terminal that Ctrl-C always ends."""

from __future__ import annotations

import select
import signal
import sys

__all__ = ["ask"]

# How long a Ctrl-C can wait that came just before the terminal was waited for.
_LOOK_S = 0.1


def ask(question: str) -> str:
    """The line that was typed, without its end; empty at the end of input. Raises :class:`KeyboardInterrupt`.
    What is printed next begins on a line of its own.

    `input` loses a Ctrl-C between its prompt and its read: the read goes on, and Python looks at signals after it. So
    nothing is read here before a line is there. Who answers at the terminal may also end the question where doit was
    started with interrupts ignored, as jobs of scripts are.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        print(question, end="", flush=True)
        while not select.select([sys.stdin], [], [], _LOOK_S)[0]:
            pass
        line = sys.stdin.readline()
        if not line.endswith("\n"):
            print(flush=True)
        return line.rstrip("\n")
    except KeyboardInterrupt:
        print(flush=True)
        raise
    finally:
        signal.signal(signal.SIGINT, before)
