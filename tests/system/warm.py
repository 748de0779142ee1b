"""`apportion`, all but started: it imports everything, says so, and waits for a line before it begins.

So a process that was killed is back within the same epoch. Run as `python -m tests.system.warm COMMAND ...`.
"""

import sys

from apportion.commands import main, program

READY = b"ready\n"

if __name__ == "__main__":
    assert program.app is not None
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()
    if sys.stdin.readline():
        sys.argv[0] = "apportion"
        main()
