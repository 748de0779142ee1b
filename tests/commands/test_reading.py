"""What a person is told whom no region answered."""

from __future__ import annotations

import grpc
import pytest

from apportion.commands.reading import unanswered

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
