"""The .proto files themselves: each name explained, the words of the core, room where absent is not zero."""

import re
from dataclasses import fields

import pytest
from google.protobuf.descriptor import FileDescriptor

from apportion.core import allocator_messages, messages
from apportion.core.decision import Reason, Scope
from apportion.proto.v1 import limiter_pb2, region_pb2
from tests.checkout import ROOT

PROTOS = ["proto/v1/region.proto", "proto/v1/limiter.proto"]
FILES = [region_pb2.DESCRIPTOR, limiter_pb2.DESCRIPTOR]
DECLARATION = re.compile(r"\s*((service|message|enum|oneof|rpc)\b|[\w.<>, ]+ = \d+;|[A-Z0-9_]+ = \d+;)")
COLUMN = re.compile(r"// Column (u32|u64|flag), (a row for each|beside)")


def comment_above(lines: list[str], index: int) -> str:
    """The comment lines right above a line, joined."""
    start = index
    while start and lines[start - 1].strip().startswith("//"):
        start -= 1
    return " ".join(line.strip() for line in lines[start:index])


@pytest.mark.parametrize("path", PROTOS)
def test_every_name_has_a_comment(path: str) -> None:
    """Each service, call, message, field, enum and value says what it is, in a sentence."""
    lines = (ROOT / path).read_text().splitlines()
    declared = [index for index, line in enumerate(lines) if DECLARATION.match(line)]
    assert len(declared) > 40
    assert [lines[index] for index in declared if not comment_above(lines, index).rstrip().endswith(".")] == []


def test_every_column_says_how_wide_it_is() -> None:
    """A field of bytes is a column, whose comment begins with its width and what its rows are, or a key."""
    lines = (ROOT / "proto/v1/region.proto").read_text().splitlines()
    columns = [index for index, line in enumerate(lines) if re.match(r"\s+bytes (?!key )", line)]
    assert len(columns) == 46
    assert [lines[index] for index in columns if not COLUMN.match(comment_above(lines, index))] == []


@pytest.mark.parametrize("file", FILES, ids=PROTOS)
def test_every_enum_begins_with_unspecified(file: FileDescriptor) -> None:
    """Zero is what a sender forgot, and the values of an enum bear its name."""
    for name, enum in file.enum_types_by_name.items():
        prefix = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper() + "_"
        assert [value.name for value in enum.values if value.number == 0] == [f"{prefix}UNSPECIFIED"]
        assert [value.name for value in enum.values if not value.name.startswith(prefix)] == []


COLUMNAR = {"Acquire", "AcquireAnswer", "QuotaName"}
NOT_SENT = {"Quota", "Member", "Group", "MemberAnswer", "GroupAnswer", "Lent", "EpochKind", "Outcome"}


def test_messages_have_the_words_of_the_core() -> None:
    """Every value of core's messages has a message of its name with fields of its names, in its order."""
    values = [
        value
        for module in (messages, allocator_messages)
        for value in vars(module).values()
        if getattr(value, "__module__", "") == module.__name__
    ]
    seen = set()
    for value in values:
        if not isinstance(value, type) or value.__name__ in NOT_SENT | COLUMNAR:
            continue
        message = region_pb2.DESCRIPTOR.message_types_by_name[value.__name__]
        assert [field.name for field in message.fields] == [field.name for field in fields(value)]
        seen.add(value.__name__)
    assert len(seen) == 23


def test_enums_have_the_words_of_the_core() -> None:
    """Each value of an enum has its namesake on the wire, and none beside it but `unspecified`."""
    pairs = [
        (messages.EpochKind, region_pb2.DESCRIPTOR.enum_types_by_name["EpochKind"], "EPOCH_KIND_"),
        (messages.Outcome, region_pb2.DESCRIPTOR.enum_types_by_name["Outcome"], "OUTCOME_"),
        (Reason, limiter_pb2.DESCRIPTOR.enum_types_by_name["Reason"], "REASON_"),
        (Scope, limiter_pb2.DESCRIPTOR.enum_types_by_name["RemainingScope"], "REMAINING_SCOPE_"),
    ]
    for ours, theirs, prefix in pairs:
        assert [value.name for value in theirs.values][1:] == [prefix + value.name for value in ours]


def test_outcomes_on_the_wire_are_one_above_ours() -> None:
    """A column of outcomes is translated by adding one, so the numbers must keep that distance."""
    for outcome in messages.Outcome:
        assert region_pb2.Outcome.Value(f"OUTCOME_{outcome.name}") == outcome + 1


def test_absent_differs_from_zero_where_it_means_something() -> None:
    """A missing report is no zero, a wait that cannot help is no wait of zero, an unknown remainder is not 0."""
    by_name = {name: message for file in FILES for name, message in file.message_types_by_name.items()}
    expected = [
        ("Remembered", "gone_epoch"),
        ("HolderState", "demand"),
        ("HolderState", "last_report_epoch"),
        ("QuotaState", "above_quota"),
        ("ExplainRequest", "domain"),
        ("ExplainRequest", "rule"),
        ("ExplainRequest", "key"),
        ("Descriptor", "cost"),
        ("DecideResponse", "deciding_rule"),
        ("RuleVerdict", "remaining"),
        ("RuleVerdict", "retry_after"),
        ("RuleVerdict", "epoch"),
    ]
    assert [pair for pair in expected if not by_name[pair[0]].fields_by_name[pair[1]].has_presence] == []


@pytest.mark.parametrize("envelope", [region_pb2.FromEdge, region_pb2.ToEdge])
def test_the_edges_stream_has_room_for_a_parent(
    envelope: type[region_pb2.FromEdge] | type[region_pb2.ToEdge],
) -> None:
    """Numbers 32 to 63 are kept for a region that attaches to a parent."""
    assert [field.name for field in envelope.DESCRIPTOR.fields if field.number >= 32] == []
    name = envelope.DESCRIPTOR.name
    text = (ROOT / "proto/v1/region.proto").read_text()
    assert re.search(rf"message {name} {{\n  // .*\n  reserved 32 to 63;", text)
