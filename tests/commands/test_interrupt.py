"""Ctrl-C: one line and exit code 130, while the program is still being imported and while it runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

IMPORTING = """
import os, signal, sys
from apportion.commands import main

class Interrupting:
    @staticmethod
    def find_spec(name, *_):
        if name == "apportion.commands.program":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting)
main()
"""
RULES = (
    'version: 1\ndomain: api\nrules:\n  - {name: x, match: {x: "*"}, key: [x], limit: {rate: 1/s}, '
    "enforce: region, when_unavailable: [deny]}\n"
)


def test_while_it_is_imported() -> None:
    """Nothing runs yet."""
    ended = subprocess.run([sys.executable, "-c", IMPORTING], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "apportion: interrupted\n")


def test_while_it_runs(tmp_path: Path) -> None:
    """It stops in good order, and its exit code says that it was interrupted."""
    (tmp_path / "rules.yaml").write_text(RULES)
    command = [sys.executable, "-m", "apportion", "region", "--rules", str(tmp_path / "rules.yaml")]
    with subprocess.Popen([*command, "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "region_ready" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130
    assert "region_stopping" in rest
    assert "Traceback" not in rest


def test_when_nobody_reads_any_more() -> None:
    """As in `apportion simulate ... | head -1`: no traceback, however much it still had to say."""
    command = [sys.executable, "-m", "apportion", "simulate", "uniform", "--seeds", "2"]
    reader, writer = os.pipe()
    os.close(reader)
    with subprocess.Popen(command, stdout=writer, stderr=subprocess.PIPE, text=True) as process:
        os.close(writer)
        assert process.stderr is not None
        said = process.stderr.read()
    assert (process.returncode, said.splitlines()[-1]) == (130, "apportion: interrupted")
    assert "Traceback" not in said
