"""Overrides between the wire and the operator: the wire has how long they still hold, for two clocks may differ."""

from __future__ import annotations

from apportion.core.errors import InputError
from apportion.core.limit import RateLimit
from apportion.core.overrides import Override, Rate
from apportion.proto.v1 import region_pb2
from apportion.region.region import Region


async def override(region: Region, request: region_pb2.OverrideRequest) -> region_pb2.OverrideResponse:
    """Answer an Override. InputError names what is wrong with it."""
    operator, response = region.operator, region_pb2.OverrideResponse(rules_version=region.authority.rules.version)
    match request.WhichOneof("change"):
        case "lay":
            changed, response.rules_version = await operator.lay(from_message(request.lay, region.store.now_ns()))
            response.changed.CopyFrom(to_message(region, changed))
        case "clear":
            changed, response.rules_version = await operator.clear(from_message(request.clear, 0))
            response.changed.CopyFrom(to_message(region, changed))
    response.overrides.extend(messages(region))
    return response


def messages(region: Region) -> list[region_pb2.Override]:
    """All that is laid now."""
    return [to_message(region, each) for each in region.operator.laid]


def to_message(region: Region, override: Override) -> region_pb2.Override:
    """One of them, with what is left of its time."""
    rate = override.rate
    return region_pb2.Override(
        domain=override.domain,
        rule=override.rule,
        key=dict(override.key),
        rate_units=rate.units if rate is not None else None,
        rate_period_ns=rate.period_ns if rate is not None else 0,
        shadow=override.shadow,
        left_ns=max(0, override.until_ns - region.store.now_ns()),
        why=override.why,
        who=override.who,
        rules=region.operator.covered(override),
    )


def from_message(message: region_pb2.Override, now_ns: int) -> Override:
    """What somebody asks for at `now_ns`. InputError: its rate is none that a rule can have."""
    rate = Rate(message.rate_units, message.rate_period_ns) if message.HasField("rate_units") else None
    if rate is not None:
        try:
            RateLimit(rate.units, rate.period_ns, 1 if rate.units else 0)
        except ValueError as error:
            raise InputError(f"the rate cannot be kept: {error}") from None
    key = tuple(sorted(message.key.items()))
    until_ns = now_ns + message.left_ns
    return Override(message.domain, message.rule, key, rate, message.shadow, until_ns, message.why, message.who)
