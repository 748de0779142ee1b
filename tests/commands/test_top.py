"""What `apportion top` prints where there is no terminal: a line for each row."""

from __future__ import annotations

from apportion.commands.top import as_lines
from apportion.core.key import encode_key
from apportion.proto.v1 import region_pb2


def test_keys_are_told_by_what_was_offered_and_by_what_was_refused() -> None:
    """Overrides are said first; of refused keys also how far the count may be too high."""
    said = region_pb2.ExplainResponse(
        epoch=7,
        rules_version=3,
        quotas=[
            region_pb2.QuotaState(
                rule="calls", key_text="contoso", limit_units=100, limit_period_ns=10**9, offered=9, refused=2
            )
        ],
        most_refused=[region_pb2.HeavyQuota(domain="api", rule="calls", key=encode_key(["a,b"]), units=7, error=1)],
        overrides=[
            region_pb2.Override(
                domain="api",
                rule="calls",
                key={"tenant": "a,b"},
                rate_units=0,
                rate_period_ns=10**9,
                left_ns=59 * 10**9,
                why="abuse",
                who="ops",
                rules=1,
            )
        ],
    )
    assert as_lines(said, keys=True) == [
        "! override: calls tenant=a,b: at most 0/s for 59s more, because: abuse (ops)",
        "epoch 7, rules version 3, nobody leads, 0 edges",
        "  rule calls  key contoso  limit 100/s  offered/s 9  refused/s 2  over 0",
        "  rule calls  key 'a,b'  refused/s 7  at most too high by 1",
    ]


def test_of_many_overrides_the_first_are_shown() -> None:
    """A list of blocked keys must not push the table off the screen."""
    said = region_pb2.ExplainResponse(overrides=[region_pb2.Override(rule="calls", rules=1)] * 12)
    lines = as_lines(said, keys=False)
    assert len([line for line in lines if line.startswith("! override: calls: shadow")]) == 10
    assert "! 2 more overrides; `apportion override` lists them" in lines
