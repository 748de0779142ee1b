"""`edge+region` beside `region`, by real processes: the same limit and offer, a hotspot that moves each 5 seconds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

RULES = """
version: 1
domain: demo
edges_max: 8
defaults: {deadline: 500ms}
rules:
  - {name: both, match: {api: both}, key: [api], limit: {rate: 100/s}, enforce: edge+region, when_unavailable: [deny]}
  - {name: exact, match: {api: exact}, key: [api], limit: {rate: 100/s}, enforce: region, when_unavailable: [deny]}
"""

SECONDS = 20
WITHIN = 0.03
UNREACHED = 3
"""Exit code of a demo of which a process did not answer for two seconds."""


@pytest.mark.timeout(180)
def test_it_admits_what_region_admits_and_refuses_little_too_early(tmp_path: Path) -> None:
    """Within 3 % of each other; under 3 % of what was offered was refused at an edge although the region had room."""
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES, encoding="utf-8")
    demo = [sys.executable, "-m", "apportion", "demo", "--rules", str(rules), "--seconds", str(SECONDS), "--json"]
    done = subprocess.run(demo, capture_output=True, text=True, check=False, timeout=75)
    if done.returncode == UNREACHED:  # a machine that stood still for seconds: that is not what is measured here
        done = subprocess.run(demo, capture_output=True, text=True, check=False, timeout=75)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = {row["rule"]: row for row in json.loads(done.stdout)["rules"]}
    both, exact = rows["both"], rows["exact"]
    assert both["overshoot_observed"] == both["overshoot_region"] == 0
    assert abs(both["utilisation"] - exact["utilisation"]) <= WITHIN, (both, exact)
    assert both["refused_with_room"] <= WITHIN * both["offered"], both
    assert both["crossings"] < both["offered"]
