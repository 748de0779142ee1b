"""Envoy's rate limit service v3 in front of an edge: requests as Envoy sends them, turned into descriptors.

Translates and nothing else; the answer's side is `rls_answer`.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from envoy.service.ratelimit.v3 import rls_pb2, rls_pb2_grpc
from google.protobuf.unknown_fields import UnknownFieldSet

from apportion.core.errors import InputError
from apportion.core.request import Descriptor
from apportion.edge.asking import DESCRIPTORS_MAX, DIMENSIONS_MAX, Answer, decision_ids, find_matcher, start
from apportion.edge.decider import Decider
from apportion.edge.rls_answer import AnswerWriter

SERVICE = rls_pb2.DESCRIPTOR.services_by_name["RateLimitService"].full_name

NEGATIVE_HITS = 4
"""Field number of `is_negative_hits`, which is newer than the classes of xds-protos: it arrives as an unknown field."""


class EnvoyRateLimit(rls_pb2_grpc.RateLimitServiceServicer):  # type: ignore[misc]
    """Answers `ShouldRateLimit`. The request's domain is the rules' `domain`, a descriptor's entries the dimensions."""

    def __init__(self, decider: Decider) -> None:
        self._decider = decider
        self._next_id = decision_ids()
        self._writer = AnswerWriter()

    def ShouldRateLimit(self, request: rls_pb2.RateLimitRequest, context: Any) -> bytes | Awaitable[bytes]:
        """A serialised RateLimitResponse, at once where nothing must cross. InputError names the wrong field."""
        if not request.domain:
            raise InputError("domain is empty; name the rules' `domain` in the rate limit filter's configuration")
        descriptors = read_descriptors(request)
        matcher = find_matcher(self._decider, request.domain)
        answer = start(self._decider, matcher, descriptors, whole=True)
        if isinstance(answer, Answer):
            return self._writer.write(answer, self._next_id(), len(descriptors))
        return self._later(answer, len(descriptors))

    async def _later(self, waiting: Awaitable[Answer], descriptors: int) -> bytes:
        return self._writer.write(await waiting, self._next_id(), descriptors)


def read_descriptors(request: rls_pb2.RateLimitRequest) -> list[Descriptor]:
    """The descriptors of a request with the costs they ask for.

    A cost named by the descriptor counts, 0 is a peek; else the request's, of which 0 means that there is none.
    """
    if not request.descriptors:
        raise InputError("descriptors is empty; a request to limit has at least one descriptor")
    if len(request.descriptors) > DESCRIPTORS_MAX:
        raise InputError(f"descriptors has {len(request.descriptors)} entries, the most is {DESCRIPTORS_MAX}")
    cost = request.hits_addend or None
    return [_read_descriptor(descriptor, index, cost) for index, descriptor in enumerate(request.descriptors)]


def _read_descriptor(descriptor: Any, index: int, cost: int | None) -> Descriptor:
    entries = descriptor.entries
    dimensions = {entry.key: entry.value for entry in entries}
    if len(dimensions) != len(entries) or not dimensions or "" in dimensions or len(entries) > DIMENSIONS_MAX:
        raise _wrong_entries(descriptor, index)
    if descriptor.HasField("limit"):
        raise InputError(
            f"descriptors[{index}].limit is not supported: limits come from the rules alone; remove `limit` from the "
            f"route's rate limit"
        )
    unknown = UnknownFieldSet(descriptor)
    if len(unknown) and any(
        unknown[at].field_number == NEGATIVE_HITS and unknown[at].data for at in range(len(unknown))
    ):
        raise InputError(
            f"descriptors[{index}].is_negative_hits is not supported: a request never gives units back; remove it from "
            f"the route's `hits_addend`"
        )
    if descriptor.HasField("hits_addend"):
        cost = descriptor.hits_addend.value
    return Descriptor(dimensions, cost)


def _wrong_entries(descriptor: Any, index: int) -> InputError:
    """What is wrong with a descriptor's entries."""
    path = f"descriptors[{index}].entries"
    keys = [entry.key for entry in descriptor.entries]
    if not keys:
        return InputError(f"{path} is empty; a descriptor has at least one entry")
    if len(keys) > DIMENSIONS_MAX:
        return InputError(f"{path} has {len(keys)} entries, the most is {DIMENSIONS_MAX}")
    if "" in keys:
        return InputError(f"{path}[{keys.index('')}].key is empty; an entry's key names a dimension")
    # Neither may be dropped: the limit that the dropped one was meant for would be off, unseen.
    twice = next(key for number, key in enumerate(keys) if key in keys[:number])
    return InputError(
        f"{path} has the key {twice[:100]!r} twice, and a dimension has one value; give each action of the descriptor "
        f"a `descriptor_key` of its own"
    )
