"""`apportion.v1.Limiter` in front of an edge, over a real connection."""

from collections.abc import Mapping

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from apportion.core.decision import Decision, Verdict
from apportion.core.errors import InputError
from apportion.core.rules_file import parse_rules
from apportion.edge.alone import Alone
from apportion.edge.limiter_service import read_descriptors
from apportion.proto.v1 import limiter_pb2
from tests.doors import Waiting, opened, refusal
from tests.in_process import ManualClock, rule_text, rules_text

pytestmark = pytest.mark.asyncio

TENANT = rules_text(rule_text("tenant-requests", "rate: 10/min, burst: 10"))


def asked(*descriptors: Mapping[str, str], cost: int | None = None, domain: str = "api") -> limiter_pb2.DecideRequest:
    """A request; `cost` of each descriptor."""
    sets = [limiter_pb2.Descriptor(dimensions=dimensions, cost=cost) for dimensions in descriptors]
    return limiter_pb2.DecideRequest(domain=domain, descriptors=sets)


async def test_an_admitted_request_carries_the_whole_verdict() -> None:
    """Rule, key, cost, remaining with whose number it is, reset, limit."""
    async with opened(TENANT) as doors:
        answer = await doors.limiter.Decide(asked({"tenant": "contoso", "color": "red"}, cost=4))
    assert answer.decision_id
    answer.decision_id = ""
    assert answer == limiter_pb2.DecideResponse(
        allowed=True,
        deciding_rule="tenant-requests",
        verdicts=[
            limiter_pb2.RuleVerdict(
                rule="tenant-requests",
                key=["contoso"],
                cost=4,
                allowed=True,
                charged=True,
                remaining=6,
                remaining_scope=limiter_pb2.REMAINING_SCOPE_EDGE,
                retry_after=Duration(),
                reset_after=Duration(seconds=24),
                limit=limiter_pb2.Limit(units=10, period=Duration(seconds=60), burst=10),
            )
        ],
    )


async def test_a_refused_request_says_how_long_to_wait() -> None:
    """All of 10/min spent: the next unit is there in six seconds."""
    async with opened(TENANT) as doors:
        await doors.limiter.Decide(asked({"tenant": "contoso"}, cost=10))
        answer = await doors.limiter.Decide(asked({"tenant": "contoso"}))
    (verdict,) = answer.verdicts
    assert (answer.allowed, verdict.reason, verdict.charged) == (False, limiter_pb2.REASON_OVER_LIMIT, False)
    assert verdict.retry_after == Duration(seconds=6)


async def test_what_can_never_pass_has_no_retry_after() -> None:
    """Absent, not zero; a cost of 2^64-1 is a cost like another."""
    async with opened(TENANT) as doors:
        answer = await doors.limiter.Decide(asked({"tenant": "contoso"}, cost=2**64 - 1))
    (verdict,) = answer.verdicts
    assert (verdict.reason, verdict.HasField("retry_after")) == (limiter_pb2.REASON_IMPOSSIBLE, False)
    assert verdict.cost == 2**64 - 1


async def test_a_sum_of_costs_above_64_bits_is_told_as_all_of_them() -> None:
    """Twice 2^64-1 for one quota."""
    async with opened(TENANT) as doors:
        answer = await doors.limiter.Decide(asked({"tenant": "a"}, {"tenant": "a"}, cost=2**64 - 1))
    assert (answer.allowed, answer.verdicts[0].cost) == (False, 2**64 - 1)


async def test_a_peek_charges_nothing() -> None:
    """It says what would be answered, cost included, twice the same."""
    async with opened(TENANT) as doors:
        peeks = [await doors.limiter.Peek(asked({"tenant": "contoso"}, cost=4)) for _ in range(2)]
        answer = await doors.limiter.Decide(asked({"tenant": "contoso"}, cost=10))
    assert [(peek.allowed, peek.verdicts[0].charged, peek.verdicts[0].remaining) for peek in peeks] == [
        (True, False, 10),
        (True, False, 10),
    ]
    assert answer.allowed


async def test_a_request_that_no_rule_limits_is_allowed_and_says_so() -> None:
    """No deciding rule and no verdicts; so also when only an unlimited rule applies."""
    async with opened(rules_text(rule_text("health", "unlimited: true", "path"))) as doors:
        answers = [await doors.limiter.Decide(asked({name: "x"})) for name in ("color", "path")]
    assert [(a.allowed, a.HasField("deciding_rule"), len(a.verdicts)) for a in answers] == [(True, False, 0)] * 2


async def test_several_requests_are_decided_in_order() -> None:
    """Each by itself: 6, then 6 more which do not fit, then 4 which do."""
    requests = [asked({"tenant": "contoso"}, cost=cost) for cost in (6, 6, 4)]
    async with opened(TENANT) as doors:
        answer = await doors.limiter.DecideMany(limiter_pb2.DecideManyRequest(requests=requests))
    assert [each.allowed for each in answer.responses] == [True, False, True]
    assert len({each.decision_id for each in answer.responses}) == 3


async def test_one_wrong_request_of_several_charges_none() -> None:
    """The error names which."""
    requests = [asked({"tenant": "contoso"}, cost=6), asked()]
    async with opened(TENANT) as doors:
        code, details = await refusal(doors.limiter.DecideMany(limiter_pb2.DecideManyRequest(requests=requests)))
        after = await doors.limiter.Peek(asked({"tenant": "contoso"}, cost=10))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert details.startswith("requests[1].descriptors has 0 entries")
    assert after.allowed


@pytest.mark.parametrize("count", [0, 1001])
async def test_the_number_of_requests_is_bounded(count: int) -> None:
    """1 to 1000."""
    many = limiter_pb2.DecideManyRequest(requests=[asked({"tenant": "contoso"})] * count)
    async with opened(TENANT) as doors:
        code, details = await refusal(doors.limiter.DecideMany(many))
        answer = await doors.limiter.Peek(asked({"tenant": "contoso"}, cost=10))
    assert (code, details) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        f"requests has {count} entries; it takes 1 to 1000, send more in further calls",
    )
    assert answer.allowed


async def test_the_wrong_field_is_named() -> None:
    """What is wrong, and what it may be."""
    rows = [
        (asked(), "descriptors has 0 entries"),
        (asked(*[{"tenant": "a"}] * 257), "descriptors has 257 entries"),
        (asked({f"d{number}": "" for number in range(257)}), "descriptors[0].dimensions has 257 entries"),
    ]
    async with opened(TENANT) as doors:
        for request, text in rows:
            code, details = await refusal(doors.limiter.Decide(request))
            assert code is grpc.StatusCode.INVALID_ARGUMENT
            assert text in details


async def test_an_empty_domain_means_the_only_one() -> None:
    """With several it must be named."""
    texts = [("a.yaml", TENANT), ("b.yaml", rules_text(rule_text("r", "rate: 1/min"), domain="batch"))]
    async with opened(TENANT) as doors:
        assert (await doors.limiter.Decide(asked({"tenant": "a"}, domain=""))).allowed
    async with opened(Alone(parse_rules(texts), ManualClock())) as doors:
        told = await refusal(doors.limiter.Decide(asked({"tenant": "a"}, domain="")))
    assert told == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "domain is empty and there are several; name one of 'api', 'batch'",
    )


async def test_requests_that_cross_wait_together() -> None:
    """All are asked before the first is answered; answers come back in the order of the requests."""
    decider = Waiting()
    async with opened(decider) as doors:
        requests = [asked({"tenant": name}) for name in "abc"]
        call = doors.limiter.DecideMany(limiter_pb2.DecideManyRequest(requests=requests))
        waiting = [await decider.asked.get() for _ in requests]
        for (application,), future in reversed(waiting):
            future.set_result(Decision(True, (Verdict(application.rule, application.key, 1, allowed=True),)))
        answer = await call
    assert [each.verdicts[0].key[0] for each in answer.responses] == ["a", "b", "c"]


async def test_costs_of_several_measures_arrive_and_contradictions_are_refused() -> None:
    """`costs` by measure; `cost` is what it calls requests, so both are one too many, and 0 is a peek at all."""
    both = limiter_pb2.Descriptor(dimensions={"tenant": "a"}, cost=2, costs={"tokens": 350})
    (descriptor,) = read_descriptors(limiter_pb2.DecideRequest(descriptors=[both]), "")
    assert descriptor.cost == {"requests": 2, "tokens": 350}
    for cost, costs in ((2, {"requests": 2}), (0, {"tokens": 1})):
        wrong = limiter_pb2.Descriptor(dimensions={"tenant": "a"}, cost=cost, costs=costs)
        with pytest.raises(InputError, match=r"descriptors\[0\].cost and .costs contradict each other"):
            read_descriptors(limiter_pb2.DecideRequest(descriptors=[wrong]), "")


async def test_a_measure_that_no_rule_counts_is_an_error_where_the_caller_wants_to_know() -> None:
    """A program's is passed over, as dimensions are; a person who misspells one is told."""
    request = asked({"tenant": "contoso"})
    request.descriptors[0].costs["tokns"] = 350
    async with opened(rules_text(rule_text("tenant-tokens", "rate: 10/min", more=", counts: tokens"))) as doors:
        assert (await doors.limiter.Decide(request)).allowed
        request.refuse_unknown_measures = True
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await doors.limiter.Decide(request)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert caught.value.details() == (
        "cost names the measure 'tokns', which no rule of the domain counts; did you mean 'tokens'?"
    )
