"""Asking a region what it knows, and words for what it answers: shared by `explain`, `top` and `override`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import grpc

from apportion.core.errors import InputError, UnavailableError
from apportion.core.limit import ceil_div
from apportion.core.quantities import duration_text, period_text
from apportion.proto.v1 import region_pb2, region_pb2_grpc
from apportion.proto.wire import CHANNEL_OPTIONS

Answer = TypeVar("Answer")

TIMEOUT_S = 5.0
"""A region answers within a second; a process that takes this long is not one."""

OVERRIDES_SHOWN = 10
"""Overrides that `explain` and `top` show; `override` lists all."""

COARSE_NS = 600 * 10**9
"""What is left of an override is told in whole seconds up to this, in whole minutes above: 59m, not 3535s."""

ENFORCES = {
    region_pb2.ENFORCE_LEASE: "lease",
    region_pb2.ENFORCE_REGION: "region",
    region_pb2.ENFORCE_EDGE: "edge",
    region_pb2.ENFORCE_EDGE_REGION: "edge+region",
}

STATES = {
    region_pb2.RULE_STATE_EXACT: "exact",
    region_pb2.RULE_STATE_BOUNDED: "bounded",
    region_pb2.RULE_STATE_ADVISORY: "advisory",
    region_pb2.RULE_STATE_DEGRADED: "degraded",
}


def ask_region(address: str, request: region_pb2.ExplainRequest) -> region_pb2.ExplainResponse:
    """Ask a replica. UnavailableError: it cannot be reached; InputError: it says the request is wrong."""
    return _asked(address, lambda region: region.Explain(request, timeout=TIMEOUT_S))


def ask_override(address: str, request: region_pb2.OverrideRequest) -> region_pb2.OverrideResponse:
    """Lay, clear or list overrides; errors as `ask_region`."""
    return _asked(address, lambda region: region.Override(request, timeout=TIMEOUT_S))


def _asked(address: str, ask: Callable[[region_pb2_grpc.RegionStub], Answer]) -> Answer:
    with grpc.insecure_channel(address, options=CHANNEL_OPTIONS) as channel:
        try:
            return ask(region_pb2_grpc.RegionStub(channel))
        except grpc.RpcError as error:
            if error.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND):
                raise InputError(str(error.details())) from error
            raise UnavailableError(unanswered(address, error.code(), error.details() or "")) from error


def unanswered(address: str, code: grpc.StatusCode, details: str) -> str:
    """What to tell a person whom no region answered: plainly what is known, else the reason as it came."""
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return f"something answers at {address}, but it is not a region's --listen address"
    hint = f"is it running, with --listen {address}?"
    if "connection refused" in details.lower():
        return f"region {address} cannot be reached: nothing listens there; {hint}"
    return f"region {address} did not answer: {details or code.name}; {hint}"


def limit_of(units: int, period_ns: int, period: str = "") -> str:
    """A limit as the rules file writes it; `period`: that of a quota of a period, in its words."""
    return f"{units}/{period or period_text(period_ns)}" if period_ns else "unlimited"


def warnings(said: region_pb2.ExplainResponse) -> list[str]:
    """What everybody who reads anything back has to know."""
    found = []
    if said.rules_rejected:
        files = ", ".join(said.rejected_files)
        found.append(f"config rejected: {files} not in force as on disk: {said.rules_rejected.splitlines()[0]}")
    behind = [edge.edge for edge in said.edges if edge.rules_version != said.rules_version]
    if behind:
        found.append(f"not yet on rules version {said.rules_version}: {', '.join(behind)}")
    found += [f"override: {override_text(each)}" for each in said.overrides[:OVERRIDES_SHOWN]]
    if len(said.overrides) > OVERRIDES_SHOWN:
        found.append(f"{len(said.overrides) - OVERRIDES_SHOWN} more overrides; `apportion override` lists them")
    return found


def override_text(override: region_pb2.Override) -> str:
    """One override for a person: what, how long still, why, by whom."""
    at = " ".join((override.rule, *(f"{name}={value}" for name, value in sorted(override.key.items()))))
    rated = override.HasField("rate_units")
    what = f"at most {limit_of(override.rate_units, override.rate_period_ns)}" if rated else "shadow, refuses nobody"
    step_ns = 60 * 10**9 if override.left_ns > COARSE_NS else 10**9
    left = duration_text(ceil_div(override.left_ns, step_ns) * step_ns) if override.left_ns else "0s"
    over = "" if override.rules else "; there is no such rule now"
    return f"{at}: {what} for {left} more, because: {override.why} ({override.who}){over}"
