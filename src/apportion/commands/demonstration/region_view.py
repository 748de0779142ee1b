"""What the demo reads from the region's Explain: its own sums by label, and slice and demand of each edge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import grpc
import grpc.aio

from apportion.commands.demonstration.questions import Question
from apportion.commands.demonstration.referee import RegionLabel
from apportion.core.key import encode_key
from apportion.proto.v1 import region_pb2, region_pb2_grpc

EPOCHS_RECENT = 10
"""Labels that are read anew each second; a label that is older has its reports."""

EPOCHS_ALL = 600
"""The most that the region keeps."""

ANSWER_S = 2.0


@dataclass(slots=True)
class QuotaView:
    """One quota by the region: `labels` its sums, `overshoot` the most that a label was over; the rest is of now.

    `refused_at_edges`: units refused above the edges' thresholds, `refused_with_room` those the quota had room for.
    `slices` and `demands` by edge; a demand that was not reported is missing, which is not zero.
    """

    labels: dict[int, RegionLabel] = field(default_factory=dict)
    overshoot: int = 0
    crossings: int = 0
    slices: dict[str, int] = field(default_factory=dict)
    demands: dict[str, int] = field(default_factory=dict)
    pool: int = 0
    refused_at_edges: int = 0
    refused_with_room: int = 0


class RegionView:
    """Asks a region; `quotas` in the order of the questions, kept up to date by `read`."""

    def __init__(self, channel: grpc.aio.Channel, questions: Sequence[Question]) -> None:
        self._stub = region_pb2_grpc.RegionStub(channel)
        self._index = {
            (each.rule.domain, each.rule.name, encode_key(each.key)): index for index, each in enumerate(questions)
        }
        self._rules = {(each.rule.domain, each.rule.name): index for index, each in enumerate(questions)}
        self.quotas = [QuotaView() for _ in questions]
        self.generation = 0
        self.epoch = 0

    async def read(self, epochs: int = EPOCHS_RECENT) -> None:
        """Ask once. Raises grpc.RpcError when the region does not answer."""
        answer = await self._stub.Explain(region_pb2.ExplainRequest(epochs=epochs), timeout=ANSWER_S)
        self.generation, self.epoch = answer.register.generation, answer.epoch
        for state in answer.quotas:
            index = self._index.get((state.domain, state.rule, state.key))
            if index is not None:
                self._take(self.quotas[index], state)
        for totals in answer.rules:
            index = self._rules.get((totals.domain, totals.rule))
            if index is not None:
                self.quotas[index].crossings = totals.crossings

    def _take(self, view: QuotaView, state: region_pb2.QuotaState) -> None:
        for each in state.epochs:
            if each.admitted or each.unreported or each.epoch in view.labels:
                view.labels[each.epoch] = RegionLabel(each.admitted, each.unreported)
        view.overshoot = max(view.overshoot, state.worst_overshoot)
        view.refused_at_edges, view.refused_with_room = state.refused_at_edges, state.refused_with_room
        view.pool = state.epochs[-1].pool if state.epochs else 0
        view.slices = {holder.edge: holder.slice for holder in state.holders}
        view.demands = {holder.edge: holder.demand for holder in state.holders if holder.HasField("demand")}
