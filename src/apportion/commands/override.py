"""`apportion override`: a lower number for a rule or for keys of it, or shadow, until it ends by itself."""

from __future__ import annotations

import getpass
import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from apportion.commands.decide import parse_dimensions
from apportion.commands.reading import ask_override, ask_region, limit_of, override_text
from apportion.core.errors import InputError
from apportion.core.overrides import ALL_RULES
from apportion.core.quantities import parse_duration, parse_rate
from apportion.listening import check_address
from apportion.process import told_plainly
from apportion.proto.v1 import region_pb2
from apportion.region.operator import LASTING_NS_MAX, TOO_LONG

WAIT_S = 3.0
"""A change is in force on every edge within 2 seconds; after this it is said which have not acknowledged it."""

POLL_S = 0.1


@told_plainly
def override(
    region: Annotated[str, typer.Option(envvar="APPORTION_REGION", metavar="ADDR", help="A region replica.")],
    rule: Annotated[
        str | None, typer.Argument(metavar="RULE|'*'", help="Name of a rule, or '*': every rule. Without one: list.")
    ] = None,
    dimensions: Annotated[
        list[str] | None,
        typer.Argument(metavar="DIMENSION=VALUE...", help="Of the rule's key: only quotas whose key has these values."),
    ] = None,
    rate: Annotated[
        str | None, typer.Option(metavar="R", help="Each of the quotas gets at most this, such as 5/s; 0/s blocks.")
    ] = None,
    shadow: Annotated[bool, typer.Option("--shadow", help="Refuse nobody; count what would be refused.")] = False,
    lasting: Annotated[
        str | None, typer.Option("--for", metavar="D", help="How long, such as 30m or 2h; at most 31d.")
    ] = None,
    why: Annotated[str, typer.Option(metavar="TEXT", help="For the audit line and everybody who reads it back.")] = "",
    who: Annotated[str, typer.Option(envvar="APPORTION_WHO", help="As above; your login name unless given.")] = "",
    clear: Annotated[bool, typer.Option("--clear", help="End the override over this rule and key now.")] = False,
    domain: Annotated[str, typer.Option(help="Domain of the rule; where several have one of this name.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Lay a lower number over a rule, or over keys of it, until it ends by itself; without a rule: list what is laid.

    An override only ever lowers a quota, but for --shadow, which has a rule (with '*': every rule, the break-glass)
    refuse nobody while it counts on. It is kept in the region's store, in force on every edge within 2 seconds, and
    stays so on edges that lose the region, until they hear it again. Laying one over the same rule and key replaces it.
    Over a quota of a period only --rate 0/s and --shadow are laid: a rate cannot lower an allowance.

    Exit codes: 0 done; 2 the override is wrong, and nothing was changed; 3 the region could not be reached.

    \b
    Examples:
        apportion override --region 127.0.0.1:7000 tenant-requests tenant=contoso --rate 0/s --for 1h --why abuse
        apportion override --region 127.0.0.1:7000 '*' --shadow --for 15m --why "refusing everybody, INC-42"
        apportion override --region 127.0.0.1:7000 tenant-requests tenant=contoso --clear
        apportion override --region 127.0.0.1:7000
    """  # noqa: D301  (the mark has the lines stay as they are)
    address = check_address(region)
    if rule is None:
        if rate is not None or shadow or lasting is not None or clear:
            raise InputError("name the rule that is meant, or '*'")
        tell(ask_override(address, region_pb2.OverrideRequest()), (), as_json)
        return
    meant = region_pb2.Override(
        domain=domain, rule=rule, key=parse_dimensions(dimensions or []), why=why, who=who or _login()
    )
    if clear:
        if rate is not None or shadow or lasting is not None:
            raise InputError("--clear goes with none of --rate, --shadow and --for")
        request = region_pb2.OverrideRequest(clear=meant)
    else:
        request = region_pb2.OverrideRequest(lay=_filled(meant, rate, shadow, lasting))
    said = ask_override(address, request)
    tell(said, behind(address, said.rules_version), as_json)


def _filled(meant: region_pb2.Override, rate: str | None, shadow: bool, lasting: str | None) -> region_pb2.Override:
    """The override with its number and its time. InputError names what is missing or wrong."""
    if (rate is not None) is shadow:
        raise InputError("give one of --rate and --shadow: a lower number, or a rule that refuses nobody")
    if lasting is None:
        raise InputError("--for is missing: say how long, such as --for 1h; an override ends by itself")
    if not meant.why.strip():
        raise InputError("--why is missing: say why, for the audit line")
    try:
        lasting_ns = parse_duration(lasting)
    except ValueError as error:
        raise InputError(f"--for: {error}") from None
    if lasting_ns > LASTING_NS_MAX:
        raise InputError(TOO_LONG)
    meant.left_ns = lasting_ns
    meant.shadow = shadow
    if rate is not None:
        try:
            meant.rate_units, meant.rate_period_ns = parse_rate(rate)
        except ValueError as error:
            raise InputError(f"--rate: {error}") from None
    return meant


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise InputError("--who is missing: there is no login name here") from None


def behind(address: str, version: int) -> tuple[str, ...]:
    """Wait until every attached edge decides by `version`; those that do not after WAIT_S."""
    end = time.monotonic() + WAIT_S
    while True:
        said = ask_region(address, region_pb2.ExplainRequest(heaviest=1))
        left = tuple(edge.edge for edge in said.edges if edge.rules_version < version)
        if not left or time.monotonic() >= end:
            return left
        time.sleep(POLL_S)


def tell(said: region_pb2.OverrideResponse, late: Sequence[str], as_json: bool) -> None:
    """Print what is laid, and which edges do not go by it yet."""
    if as_json:
        listed = [as_object(each) for each in said.overrides]
        print(json.dumps({"rules_version": said.rules_version, "overrides": listed, "edges_behind": list(late)}))
        return
    for each in said.overrides:
        print(override_text(each))
    if not said.overrides:
        print("no overrides")
    if late:
        print(f"! not yet on rules version {said.rules_version}: {', '.join(late)}")


def as_object(override: region_pb2.Override) -> dict[str, object]:
    """One override as `--json` prints it."""
    rated = override.HasField("rate_units")
    return {
        "domain": override.domain or None,
        "rule": override.rule,
        "all_rules": override.rule == ALL_RULES,
        "key": dict(override.key),
        "rate": limit_of(override.rate_units, override.rate_period_ns) if rated else None,
        "shadow": override.shadow,
        "left": override.left_ns / 1e9,
        "until": (datetime.now(UTC) + timedelta(seconds=override.left_ns / 1e9)).isoformat(timespec="seconds"),
        "why": override.why,
        "who": override.who,
        "rules": override.rules,
    }
