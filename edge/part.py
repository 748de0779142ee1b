"""One rule's part in one request, on its way from check to charge. Pure."""

from __future__ import annotations

from apportion.core.decision import Verdict
from apportion.core.request import Application
from apportion.edge.holding import Holding
from apportion.edge.taken import Taken


class Part:
    """An application with the `holding` it draws on (None: unlimited, or no room for it), whether it `crosses`, what
    was `taken` from the holding, and the rule's `verdict`, None until the rule has spoken. `over_threshold`: the edge
    refused without knowing whether the region had room. `fallen`: nobody who may decide did, and the rule's stage
    lets it pass.
    """

    __slots__ = ("application", "crosses", "fallen", "holding", "over_threshold", "taken", "verdict")

    def __init__(
        self,
        application: Application,
        holding: Holding | None,
        verdict: Verdict | None = None,
        crosses: bool = False,
    ) -> None:
        self.application = application
        self.holding = holding
        self.verdict = verdict
        self.crosses = crosses
        self.taken: Taken | None = None
        self.fallen = False
        self.over_threshold = False

    @property
    def held(self) -> Holding:
        """The holding of a part that crosses: an unlimited rule never does."""
        assert self.holding is not None
        return self.holding

    @property
    def refused(self) -> bool:
        """Whether the rule has refused."""
        return self.verdict is not None and not self.verdict.allowed
