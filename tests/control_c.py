"""Ctrl-C while a program learns."""

import signal
import subprocess
import sys
import textwrap
import time

# Enough for any machine; reached only if something hangs.
FOREVER = 120


def interrupted(program, after):
    """Run a program, and interrupt it this many seconds after it has printed "learning".

    It prints when it was interrupted by `time.monotonic`, and a word, which is returned; there must
    be less than a second in between.
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout.readline().strip() == "learning", child.stderr.read()
        time.sleep(after)
        sent = time.monotonic()
        child.send_signal(signal.SIGINT)
        output, errors = child.communicate(timeout=FOREVER)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == 0, errors
    caught, word = output.split()
    assert float(caught) - sent < 1
    return word
