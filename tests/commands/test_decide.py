"""What a person is told who asked for a decision and got none."""

from __future__ import annotations

import re
import socket

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from apportion.commands.decide import as_text, ask, parse_costs, question, unanswered
from apportion.commands.edge import edge
from apportion.core.errors import InputError, UnavailableError
from apportion.core.request import Cost
from apportion.edge.limiter_answer import from_response
from apportion.proto.v1 import limiter_pb2

NOT_AN_EDGE = "something answers at h:1, but it is not an edge's --rls address"


@pytest.mark.parametrize(
    "code, details, said",
    [
        (grpc.StatusCode.UNIMPLEMENTED, "Method not found!", NOT_AN_EDGE),
        (grpc.StatusCode.UNKNOWN, "Stream removed", NOT_AN_EDGE),
        (grpc.StatusCode.UNAVAILABLE, "last error: Failed parsing HTTP/2 (Expected SETTINGS", NOT_AN_EDGE),
        (
            grpc.StatusCode.UNAVAILABLE,
            "errors resolving h:1: [field:hostname lookup error]",
            "edge h:1 cannot be reached: its host is not known; name an edge's --rls address",
        ),
        (
            grpc.StatusCode.DEADLINE_EXCEEDED,
            "",
            "edge h:1 did not answer within 5 s; is that an edge's --rls address?",
        ),
    ],
)
def test_why_there_is_no_decision(code: grpc.StatusCode, details: str, said: str) -> None:
    """In words of our own."""
    assert unanswered("h:1", code, details) == said


def test_nothing_listens() -> None:
    """One sentence, with the address."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(UnavailableError) as caught:
            ask(address, limiter_pb2.DecideRequest(), peek=False)
    assert str(caught.value) == (
        f"edge {address} cannot be reached: nothing listens there; is it running, with --rls {address}?"
    )


def test_one_address_for_both_doors_of_an_edge(capsys: pytest.CaptureFixture[str]) -> None:
    """Said before anything is opened."""
    with pytest.raises(Exception, match="2"):
        edge("a", "b", alone=True, rules="rules.yaml", rls="127.0.0.1:1", http="127.0.0.1:1")
    said = "apportion: --rls and --http are both 127.0.0.1:1; each door needs an address of its own\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    "texts, cost",
    [
        ([], None),
        (["3"], 3),
        (["0"], 0),
        (["tokens=350"], {"tokens": 350}),
        (["1", "tokens=1_000"], {"requests": 1, "tokens": 1_000}),
        (["requests=0"], {"requests": 0}),
    ],
)
def test_costs_are_numbers_of_requests_or_of_a_measure(texts: list[str], cost: Cost) -> None:
    """A lone 0 is a peek at every rule, requests=0 at those that count requests."""
    assert parse_costs(texts) == cost


@pytest.mark.parametrize(
    "texts, words",
    [
        (["x"], "--cost x: found `x`, a whole number is meant"),
        (["tokens="], "--cost tokens=: found ``, a whole number is meant"),
        (["=3"], "--cost '=3' names no measure: write --cost tokens=350"),
        (["1", "requests=2"], "--cost names 'requests' twice"),
        (["tokens=18446744073709551616"], "the largest number is 18446744073709551615"),
    ],
)
def test_wrong_costs_say_what_is_right(texts: list[str], words: str) -> None:
    """Before anything is sent."""
    with pytest.raises(InputError, match=re.escape(words)):
        parse_costs(texts)


def test_the_costs_of_a_question_are_by_measure_and_a_misspelt_one_is_to_be_refused() -> None:
    """As the edge reads them."""
    message = question({"tenant": "a"}, {"requests": 1, "tokens": 350}, "")
    assert message.refuse_unknown_measures
    assert dict(message.descriptors[0].costs) == {"requests": 1, "tokens": 350}
    assert not message.descriptors[0].HasField("cost")


def test_that_nothing_remains_is_said() -> None:
    """0 is a number that a person asked for, unlike a field with nothing to say."""
    limit = limiter_pb2.Limit(units=20, period=Duration(seconds=60), burst=5)
    verdict = limiter_pb2.RuleVerdict(
        rule="orders", key=["contoso"], cost=5, allowed=True, charged=True, limit=limit, remaining=0, epoch=7
    )
    verdict.remaining_scope = limiter_pb2.REMAINING_SCOPE_REGION
    verdict.reset_after.seconds = 15
    told = as_text(from_response(limiter_pb2.DecideResponse(allowed=True, verdicts=[verdict])))
    assert told == (
        "allowed\n  rule orders, key ['contoso'], cost 5, allowed True, charged True, remaining 0, "
        "remaining scope region, reset after 15.0, epoch 7"
    )
