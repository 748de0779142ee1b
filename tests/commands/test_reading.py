"""What a person is told whom no region answered."""

from __future__ import annotations

import grpc
import pytest

from apportion.commands.reading import override_text, unanswered
from apportion.proto.v1 import region_pb2

REFUSED = "failed to connect to all addresses; last error: UNKNOWN: ipv4:1.2.3.4:5: Connection refused"


@pytest.mark.parametrize(
    "code, details, said",
    [
        (
            grpc.StatusCode.UNAVAILABLE,
            REFUSED,
            "region h:1 cannot be reached: nothing listens there; is it running, with --listen h:1?",
        ),
        (
            grpc.StatusCode.UNIMPLEMENTED,
            "this method is not offered here",
            "something answers at h:1, but it is not a region's --listen address",
        ),
        (
            grpc.StatusCode.UNAVAILABLE,
            "the store is full",
            "region h:1 did not answer: the store is full; is it running, with --listen h:1?",
        ),
        (
            grpc.StatusCode.DEADLINE_EXCEEDED,
            "",
            "region h:1 did not answer: DEADLINE_EXCEEDED; is it running, with --listen h:1?",
        ),
    ],
)
def test_a_region_that_gave_no_answer(code: grpc.StatusCode, details: str, said: str) -> None:
    """In plain words where it is known what happened, else with the reason as it came."""
    assert unanswered("h:1", code, details) == said


@pytest.mark.parametrize(
    "left_ns, said",
    [(3_592 * 10**9, "1h"), (3_540 * 10**9, "59m"), (601 * 10**9, "11m"), (599 * 10**9, "599s"), (1, "1s"), (0, "0s")],
)
def test_what_is_left_of_an_override(left_ns: int, said: str) -> None:
    """Rounded up, so that it is never over before it is told to be."""
    override = region_pb2.Override(rule="orders", shadow=True, left_ns=left_ns, why="INC-42", who="ops", rules=1)
    assert override_text(override) == f"orders: shadow, refuses nobody for {said} more, because: INC-42 (ops)"
