"""Asking a region what it knows, and words for what it answers: shared by `apportion explain` and `apportion top`."""

from __future__ import annotations

import grpc

from apportion.core.errors import InputError, UnavailableError
from apportion.core.quantities import period_text
from apportion.proto.v1 import region_pb2, region_pb2_grpc
from apportion.proto.wire import CHANNEL_OPTIONS

TIMEOUT_S = 5.0
"""A region answers within a second; a process that takes this long is not one."""

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
    with grpc.insecure_channel(address, options=CHANNEL_OPTIONS) as channel:
        try:
            return region_pb2_grpc.RegionStub(channel).Explain(request, timeout=TIMEOUT_S)
        except grpc.RpcError as error:
            if error.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND):
                raise InputError(str(error.details())) from error
            reason = error.details() or error.code().name
            raise UnavailableError(
                f"region {address} did not answer: {reason}; is it running, with --listen {address}?"
            ) from error


def limit_of(units: int, period_ns: int) -> str:
    """A limit as the rules file writes it."""
    return f"{units}/{period_text(period_ns)}" if period_ns else "unlimited"


def warnings(said: region_pb2.ExplainResponse) -> list[str]:
    """What everybody who reads anything back has to know."""
    found = []
    if said.rules_rejected:
        files = ", ".join(said.rejected_files)
        found.append(f"config rejected: {files} not in force as on disk: {said.rules_rejected.splitlines()[0]}")
    behind = [edge.edge for edge in said.edges if edge.rules_version != said.rules_version]
    if behind:
        found.append(f"not yet on rules version {said.rules_version}: {', '.join(behind)}")
    return found
