"""C40, at the doors: slow is neither allowed nor denied by accident; every call is answered in time."""

import signal
import time
from pathlib import Path
from statistics import median
from typing import Literal

import pytest

from apportion import Limiter
from tests.edge_process import running_edge
from tests.in_process import rule_text, rules_text

CALLS = 100
DEADLINE_S = 0.02
SLACK_S = 0.1
"""Of the median call, on a machine that has other things to do; and none waits for the freeze's end, which comes after
them all."""

RULES = rules_text(rule_text("tenant-requests", "rate: 1/hour, burst: 1000"))
A = {"tenant": "a"}


@pytest.mark.asyncio
@pytest.mark.parametrize("choice, allowed", [("allow", True), ("deny", False)])
async def test_a_frozen_agent_and_a_deadline_of_20_ms(
    choice: Literal["allow", "deny"], allowed: bool, tmp_path: Path
) -> None:
    """100 calls during the freeze are answered degraded, within the deadline; after it the agent's answers count again.

    What was sent into the freeze may be charged late, once each and never more.
    """
    async with running_edge(RULES, tmp_path) as edge:
        limiter = Limiter.connect(edge.rls, when_unreachable=choice, timeout_s=DEADLINE_S)
        while (await limiter.decide_async(A, peek=True)).degraded:
            pass
        edge.send(signal.SIGSTOP)
        took = []
        for _ in range(CALLS):
            began = time.monotonic()
            decision = await limiter.decide_async(A)
            took.append(time.monotonic() - began)
            assert (decision.allowed, decision.degraded) == (allowed, True)
            assert decision.reason == (None if allowed else "unavailable")
        edge.send(signal.SIGCONT)
        assert median(took) < DEADLINE_S + SLACK_S
        while (await limiter.decide_async(A, peek=True)).degraded:
            pass
        admitted = 0
        for _ in range(CALLS):
            decision = await limiter.decide_async(A)
            admitted += decision.allowed and not decision.degraded
        patient = Limiter.connect(edge.rls, when_unreachable="deny", timeout_s=10.0)
        left = (await patient.decide_async(A, peek=True)).remaining
        await patient.close_async()
        await limiter.close_async()
    assert left is not None
    assert 1000 - 2 * CALLS <= left <= 1000 - admitted
