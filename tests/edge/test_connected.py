"""`Limiter.connect` as a user meets it: the agent's answers, its absence, wrong input, several workers."""

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from structlog.testing import capture_logs

import apportion
from apportion import Decision, InputError, Limiter
from apportion.edge.connected import ConnectedLimiter
from tests.doors import opened
from tests.edge_process import EdgeProcess, running_edge
from tests.in_process import SECOND, rule_text, rules_text

FIVE = rules_text(rule_text("tenant-requests", "rate: 1/min, burst: 5"))
A = {"tenant": "a"}
NOBODY = "127.0.0.1:9"
"""The discard port: nobody listens there."""

LONG_S = 10.0
"""A timeout that no answer takes, for agents that are there."""


async def in_thread(limiter: Limiter, *arguments: Any, **rest: Any) -> Decision:
    """`decide`, which blocks, beside the event loop that serves the agent."""
    return await asyncio.to_thread(limiter.decide, *arguments, **rest)


@pytest.mark.asyncio
async def test_an_agent_decides_and_its_decision_reads_as_one_in_process(tmp_path: Path) -> None:
    """Every field of the interface, admitted and refused; waiting as told helps."""
    path = tmp_path / "rules.yaml"
    path.write_text(FIVE)
    async with opened(FIVE) as doors:
        with Limiter.connect(doors.doors.address, when_unreachable="deny", timeout_s=LONG_S) as limiter:
            own = Limiter.from_rules(path, doors.clock)
            for cost in (2, 3, 1):
                there, here = await in_thread(limiter, A, cost=cost), own.decide(A, cost=cost)
                for name in (
                    *("allowed", "rule", "limit", "remaining", "remaining_scope"),
                    *("retry_after", "reset_after", "degraded", "reason"),
                ):
                    assert getattr(there, name) == getattr(here, name), name
            last = await in_thread(limiter, A, cost=1)
            assert (last.allowed, last.retry_after, last.reason) == (False, 60.0, "over_limit")
            doors.clock.now_ns += 60 * SECOND
            assert await in_thread(limiter, A, cost=1)


@pytest.mark.asyncio
async def test_the_asynchronous_call_decides_the_same() -> None:
    """Cost, domain and peek are passed on, over a unix socket too."""
    async with opened(FIVE) as doors, Limiter.connect(doors.doors.address, "deny", LONG_S) as limiter:
        assert (await limiter.decide_async(A, 2)).remaining == 3
        assert (await limiter.decide_async(A, 3, domain="api", peek=True)).allowed
        assert not (await limiter.decide_async(A, cost=4)).allowed
        assert (await limiter.decide_async({"other": "a"})).rule is None


@pytest.mark.asyncio
async def test_an_agent_on_a_unix_socket(tmp_path: Path) -> None:
    """One agent for all workers of a host."""
    address = f"unix:{tmp_path}/edge.sock"
    async with opened(FIVE, address), Limiter.connect(address, "deny", LONG_S) as limiter:
        assert (await limiter.decide_async(A)).remaining == 4
        assert (await in_thread(limiter, A)).remaining == 3


@pytest.mark.asyncio
@pytest.mark.parametrize("choice, allowed", [("allow", True), ("deny", False)])
async def test_without_an_agent_the_choice_is_the_answer(choice: Literal["allow", "deny"], allowed: bool) -> None:
    """Marked degraded, without numbers; said in the log once, not for each request."""
    limiter = Limiter.connect(NOBODY, when_unreachable=choice)
    with capture_logs() as logs:
        for decision in [await limiter.decide_async(A), limiter.decide(A), limiter.decide(A, 3, peek=True)]:
            assert (decision.allowed, bool(decision), decision.degraded) == (allowed, allowed, True)
            assert (decision.rule, decision.limit, decision.remaining, decision.remaining_scope) == (None,) * 4
            assert decision.reset_after is None
            assert decision.reason == (None if allowed else "unavailable")
            assert decision.retry_after == (0.0 if allowed else 1.0)
    assert [(line["event"], line["log_level"]) for line in logs] == [("edge_unreachable", "warning")]
    await limiter.close_async()


@asynccontextmanager
async def agent(folder: Path, rls: str) -> AsyncIterator[EdgeProcess]:
    """An edge process with FIVE."""
    async with running_edge(FIVE, folder, rls=rls) as edge:
        yield edge


@pytest.mark.asyncio
@pytest.mark.parametrize("choice, allowed", [("allow", True), ("deny", False)])
async def test_an_agent_killed_and_started_again(
    choice: Literal["allow", "deny"], allowed: bool, tmp_path: Path
) -> None:
    """Decisions, then the choice within the timeout for every call, then decisions again, without a new limiter."""
    address = f"unix:{tmp_path}/edge.sock"
    limiter = Limiter.connect(address, when_unreachable=choice, timeout_s=0.5)
    async with agent(tmp_path, address) as edge:
        assert await reached(limiter)
        edge.send(signal.SIGKILL)
        await edge.process.wait()
        for _ in range(5):
            began = time.monotonic()
            decisions = [await in_thread(limiter, A), await limiter.decide_async(A)]
            assert time.monotonic() - began < 2 * 0.5 + 0.5
            assert [(each.allowed, each.degraded) for each in decisions] == [(allowed, True)] * 2
    async with agent(tmp_path, address):
        assert (await reached(limiter)).rule == "tenant-requests"
    await limiter.close_async()


async def reached(limiter: Limiter) -> Decision:
    """The first decision by an agent, which may have to be connected to; both ways of asking get one."""
    until = time.monotonic() + 20.0
    while time.monotonic() < until:
        decisions = [await in_thread(limiter, A, peek=True), await limiter.decide_async(A, peek=True)]
        if not any(decision.degraded for decision in decisions):
            return decisions[0]
    raise AssertionError("no agent was reached within 20 s")


@pytest.mark.parametrize("choice", [None, "", "allowed", "keep_share", True, []])
def test_what_happens_without_an_agent_must_be_chosen(choice: Any) -> None:
    """There is no default, and the error says how to choose."""
    with pytest.raises(InputError, match=r"'allow' or 'deny'.*fragile usually wants 'deny', a courtesy 'allow'"):
        Limiter.connect(NOBODY, when_unreachable=choice)
    with pytest.raises(InputError, match="when_unreachable"):
        Limiter.connect(NOBODY)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), 61, "1", None, True])
def test_a_timeout_that_is_none(timeout: Any) -> None:
    """It is above 0 and finite."""
    with pytest.raises(InputError, match="timeout_s is above 0"):
        Limiter.connect(NOBODY, "deny", timeout)


def test_an_address_that_is_none() -> None:
    """As every address."""
    with pytest.raises(InputError, match="neither HOST:PORT"):
        Limiter.connect("nowhere", "deny")


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"request": "tenant"}, "a mapping of dimensions"),
        ({"request": {"tenant": 7}}, "'tenant' (str) has the value 7 (int)"),
        ({"request": {7: "a"}}, "7 (int) has the value"),
        ({"request": {"tenant": None}}, "None (NoneType)"),
        ({"request": {"tenant": "\ud800"}}, "not UTF-8"),
        ({"request": {"tenant": "a" * (4 * 2**20)}}, "takes at most 4194304"),
        ({"request": A, "cost": -1}, "below 0"),
        ({"request": A, "cost": 2**64}, "above 18446744073709551615"),
        ({"request": A, "cost": 1.5}, "whole number"),
        ({"request": A, "cost": True}, "whole number"),
        ({"request": A, "domain": 7}, "domain is a text"),
    ],
)
def test_wrong_input_raises_and_is_no_outage(arguments: dict[str, Any], words: str) -> None:
    """Even where the agent is away and the choice is to allow: what is wrong must not pass."""
    with Limiter.connect(NOBODY, "allow") as limiter, pytest.raises(InputError) as refused:
        limiter.decide(**arguments)
    assert words in str(refused.value)


@pytest.mark.asyncio
async def test_what_the_agent_finds_wrong_raises_too() -> None:
    """A misspelt domain must not be allowed as an outage would."""
    async with opened(FIVE) as doors, Limiter.connect(doors.doors.address, "allow", LONG_S) as limiter:
        with pytest.raises(InputError, match="there is no domain 'apl'; the rules have 'api'"):
            await limiter.decide_async(A, domain="apl")
        with pytest.raises(InputError, match="there is no domain 'apl'"):
            await in_thread(limiter, A, domain="apl")


@pytest.mark.asyncio
async def test_a_closed_limiter_says_so() -> None:
    """Not that the agent is away."""
    async with opened(FIVE) as doors:
        limiter = Limiter.connect(doors.doors.address, "allow", LONG_S)
        await in_thread(limiter, A)
        await limiter.close_async()
        with pytest.raises(InputError, match="closed"):
            limiter.decide(A)
        with pytest.raises(InputError, match="closed"):
            await limiter.decide_async(A)


@pytest.mark.asyncio
async def test_threads_share_a_limiter() -> None:
    """Eight of them, five units between them."""
    async with opened(FIVE) as doors:
        with Limiter.connect(doors.doors.address, "deny", LONG_S) as limiter:
            answers: list[bool] = []
            threads = [threading.Thread(target=lambda: answers.append(limiter.decide(A).allowed)) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                await asyncio.to_thread(thread.join)
    assert sorted(answers) == [False] * 3 + [True] * 5


def test_each_event_loop_has_its_own_connection(tmp_path: Path) -> None:
    """A limiter outlives the loop that it was first used in."""
    with agent_beside(tmp_path) as address:
        limiter = Limiter.connect(address, "deny", LONG_S)
        remaining = [asyncio.run(limiter.decide_async(A)).remaining for _ in range(2)]
        limiter.close()
    assert remaining == [4, 3]


def test_workers_forked_from_one_parent_share_the_agent(tmp_path: Path) -> None:
    """The limiter is made before the fork, as a server that loads its application first does."""
    with agent_beside(tmp_path) as address:
        limiter = Limiter.connect(address, "deny", LONG_S)
        context = multiprocessing.get_context("fork")
        answers: Any = context.Queue()
        workers = [context.Process(target=lambda: answers.put(decided(limiter)), daemon=True) for _ in range(3)]
        for worker in workers:
            worker.start()
        remaining = sorted(answers.get(timeout=20.0) for _ in workers)
        for worker in workers:
            worker.join(20.0)
        assert limiter.decide(A).remaining == 1
        limiter.close()
    assert remaining == [2, 3, 4]


def test_another_process_makes_another_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the parent has decided already: its connection is not the worker's to use, nor to close."""
    with agent_beside(tmp_path) as address:
        limiter = ConnectedLimiter(address, "deny", LONG_S)
        assert limiter.decide(A).remaining == 4
        parents = limiter._channel
        monkeypatch.setattr(os, "getpid", lambda: -1)
        assert limiter.decide(A).remaining == 3
        assert limiter._channel is not parents
        monkeypatch.undo()
        limiter.close()


def decided(limiter: Limiter) -> int | None:
    """What is left after a decision in this process."""
    return limiter.decide(A).remaining


@contextmanager
def agent_beside(folder: Path) -> Iterator[str]:
    """An edge process, for a test that has no event loop of its own; gives its address."""
    loop = asyncio.new_event_loop()
    running = running_edge(FIVE, folder)
    try:
        edge = loop.run_until_complete(running.__aenter__())
        yield edge.rls
    finally:
        loop.run_until_complete(running.__aexit__(None, None, None))
        loop.close()


def test_who_decides_in_process_loads_no_grpc(tmp_path: Path) -> None:
    """It would cost every start a fifth of a second, and threads."""
    found = subprocess.run(
        [sys.executable, "-c", "import sys, apportion; print('grpc' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout == "False\n"


def test_a_connected_limiter_is_a_limiter() -> None:
    """Code that takes one takes the other."""
    limiter: apportion.Limiter = Limiter.connect(NOBODY, "deny")
    assert isinstance(limiter, ConnectedLimiter)
