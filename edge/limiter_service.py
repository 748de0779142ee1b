"""`apportion.v1.Limiter` in front of an edge: its messages to descriptors. The answer's side is `limiter_answer`.

Translates and nothing else. A request's dimensions may be more than a rule names, unlike those of RLS.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any

from apportion.core.errors import InputError
from apportion.core.match import Matcher
from apportion.core.request import MEASURE_NAME_MAX, MEASURES_MAX, Cost, Descriptor
from apportion.core.rule import REQUESTS
from apportion.edge.asking import (
    DESCRIPTORS_MAX,
    DIMENSIONS_MAX,
    Answer,
    decision_ids,
    find_matcher,
    start,
    unknown_measure,
)
from apportion.edge.decider import Decider
from apportion.edge.limiter_answer import to_response
from apportion.proto.v1 import limiter_pb2, limiter_pb2_grpc

SERVICE = limiter_pb2.DESCRIPTOR.services_by_name["Limiter"].full_name

REQUESTS_MAX = 1_000
"""Requests of one DecideMany: a few milliseconds, during which no other request is answered."""

Asked = tuple[Matcher, list[Descriptor]]
Response = limiter_pb2.DecideResponse


class LimiterService(limiter_pb2_grpc.LimiterServicer):
    """Decide, DecideMany and Peek. InputError names the field that is wrong."""

    def __init__(self, decider: Decider) -> None:
        self._decider = decider
        self._next_id = decision_ids()

    def Decide(self, request: limiter_pb2.DecideRequest, context: Any) -> Response | Awaitable[Response]:
        """Decide one request."""
        return self._one(request, peek=False)

    def Peek(self, request: limiter_pb2.DecideRequest, context: Any) -> Response | Awaitable[Response]:
        """What would be answered now."""
        return self._one(request, peek=True)

    async def DecideMany(self, request: limiter_pb2.DecideManyRequest, context: Any) -> limiter_pb2.DecideManyResponse:
        """Decide several, in order. All are read before the first is charged."""
        count = len(request.requests)
        if not 1 <= count <= REQUESTS_MAX:
            raise InputError(f"requests has {count} entries; it takes 1 to {REQUESTS_MAX}, send more in further calls")
        asked = [self._read(each, f"requests[{index}].") for index, each in enumerate(request.requests)]
        answers = await _all([self._start(each, peek=False) for each in asked])
        return limiter_pb2.DecideManyResponse(responses=[self._tell(answer) for answer in answers])

    def _one(self, request: limiter_pb2.DecideRequest, peek: bool) -> Response | Awaitable[Response]:
        answer = self._start(self._read(request, ""), peek)
        return self._tell(answer) if isinstance(answer, Answer) else self._later(answer)

    async def _later(self, waiting: Awaitable[Answer]) -> Response:
        return self._tell(await waiting)

    def _read(self, request: limiter_pb2.DecideRequest, path: str) -> Asked:
        descriptors = read_descriptors(request, path)
        matcher = find_matcher(self._decider, request.domain)
        wrong = unknown_measure(matcher, descriptors) if request.refuse_unknown_measures else None
        if wrong is not None:
            raise InputError(f"{path}cost {wrong}")
        return matcher, descriptors

    def _start(self, asked: Asked, peek: bool) -> Answer | Coroutine[None, None, Answer]:
        matcher, descriptors = asked
        return start(self._decider, matcher, descriptors, whole=False, peek=peek)

    def _tell(self, answer: Answer) -> Response:
        return to_response(answer, self._next_id())


async def _all(started: list[Answer | Coroutine[None, None, Answer]]) -> list[Answer]:
    """Every answer, in order."""
    waited = iter(await asyncio.gather(*(each for each in started if not isinstance(each, Answer))))
    return [each if isinstance(each, Answer) else next(waited) for each in started]


def read_descriptors(request: limiter_pb2.DecideRequest, path: str) -> list[Descriptor]:
    """The descriptors of a request; `path` stands in front of the names of wrong fields."""
    count = len(request.descriptors)
    if not 1 <= count <= DESCRIPTORS_MAX:
        raise InputError(
            f"{path}descriptors has {count} entries; a request has 1 to {DESCRIPTORS_MAX} sets of dimensions"
        )
    descriptors = []
    for index, descriptor in enumerate(request.descriptors):
        if len(descriptor.dimensions) > DIMENSIONS_MAX:
            raise InputError(
                f"{path}descriptors[{index}].dimensions has {len(descriptor.dimensions)} entries, the most is "
                f"{DIMENSIONS_MAX}"
            )
        descriptors.append(
            Descriptor(dict(descriptor.dimensions), _read_cost(descriptor, f"{path}descriptors[{index}]"))
        )
    return descriptors


def _read_cost(descriptor: limiter_pb2.Descriptor, path: str) -> Cost:
    """What a descriptor costs, by measure where it says so."""
    cost = descriptor.cost if descriptor.HasField("cost") else None
    if not descriptor.costs:
        return cost
    costs = dict(descriptor.costs)
    if len(costs) > MEASURES_MAX:
        raise InputError(f"{path}.costs names {len(costs)} measures, the most is {MEASURES_MAX}")
    if any(not 0 < len(measure) <= MEASURE_NAME_MAX for measure in costs):
        raise InputError(f"{path}.costs has a measure whose name is not of 1 to {MEASURE_NAME_MAX} characters")
    if cost is None:
        return costs
    if REQUESTS in costs or not cost:
        raise InputError(
            f"{path}.cost and .costs contradict each other: `cost` is costs[{REQUESTS!r}], and 0 a peek; give one"
        )
    return {**costs, REQUESTS: cost}
