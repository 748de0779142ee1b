"""`apportion decide`: ask an edge for one decision, from a shell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated

import grpc
import typer

from apportion.core.decision import Decision
from apportion.core.errors import InputError, UnavailableError
from apportion.core.quantities import parse_count
from apportion.core.request import MEASURE_NAME_MAX, MEASURES_MAX, Cost
from apportion.core.rule import REQUESTS
from apportion.edge.limiter_answer import as_object, from_response, verdict_object
from apportion.listening import check_address
from apportion.process import ExitCode, told_plainly
from apportion.proto.v1 import limiter_pb2, limiter_pb2_grpc
from apportion.proto.wire import CHANNEL_OPTIONS

TIMEOUT_S = 5.0
"""An edge answers within a rule's deadline; a process that takes this long is not one."""


@told_plainly
def decide(
    dimensions: Annotated[list[str], typer.Argument(metavar="DIMENSION=VALUE...", help="What is asked for.")],
    edge: Annotated[str, typer.Option(envvar="APPORTION_EDGE", metavar="ADDR", help="An edge's --rls address.")],
    cost: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N|MEASURE=N",
            help="Requests it counts as, or units of a measure, each named once; each rule's default unless given.",
        ),
    ] = None,
    domain: Annotated[str, typer.Option(help="Domain of the rules; needed where there are several.")] = "",
    peek: Annotated[bool, typer.Option("--peek", help="Look, charge nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Ask an edge whether a request may pass. Exit code 0: allowed, 1: refused, 3: the edge could not be reached.

    \b
    Examples:
        apportion decide --edge 127.0.0.1:8081 tenant=contoso api=search --cost 3
        apportion decide --edge 127.0.0.1:8081 tenant=contoso --cost requests=1 --cost tokens=350
    """  # noqa: D301  (the mark has the lines stay as they are)
    request = question(parse_dimensions(dimensions), parse_costs(cost or []), domain)
    answer = ask(check_address(edge), request, peek)
    decision = from_response(answer, domain)
    print(json.dumps(as_object(decision, answer.decision_id), indent=2) if as_json else as_text(decision))
    if not decision.allowed:
        raise typer.Exit(ExitCode.NO)


def parse_dimensions(texts: list[str]) -> dict[str, str]:
    """`name=value` arguments as dimensions; InputError for one without "=", without a name, or said twice."""
    dimensions: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InputError(f"{text!r} is not DIMENSION=VALUE: write tenant=contoso")
        if name in dimensions:
            raise InputError(f"dimension {name!r} is given twice")
        for part in (name, value):
            if not part.isprintable() and any("\ud800" <= character <= "\udfff" for character in part):
                raise InputError(f"dimension {name!r} is not UTF-8 text")
        dimensions[name] = value
    return dimensions


def parse_costs(texts: list[str]) -> Cost:
    """`3`, of requests, or `tokens=350`, as a cost. InputError for what is no number, and for a measure said twice."""
    costs: dict[str, int] = {}
    for text in texts:
        name, equals, number = text.rpartition("=")
        measure = name if equals else REQUESTS
        if not 0 < len(measure) <= MEASURE_NAME_MAX:
            raise InputError(f"--cost {text!r} names no measure: write --cost tokens=350")
        if measure in costs:
            raise InputError(f"--cost names {measure!r} twice")
        try:
            costs[measure] = parse_count(number)
        except ValueError as error:
            raise InputError(f"--cost {text}: {error}") from None
    if len(costs) > MEASURES_MAX:
        raise InputError(f"--cost names {len(costs)} measures, the most is {MEASURES_MAX}")
    alone = len(texts) == 1 and "=" not in texts[0]  # 0 is then a peek at every rule
    return costs[REQUESTS] if alone else costs or None


def question(dimensions: dict[str, str], cost: Cost, domain: str) -> limiter_pb2.DecideRequest:
    """The question as a message. A misspelt measure is an error: a person means what they name."""
    descriptor = limiter_pb2.Descriptor(dimensions=dimensions)
    if isinstance(cost, int):
        descriptor.cost = cost
    for measure, units in cost.items() if isinstance(cost, Mapping) else ():
        descriptor.costs[measure] = units
    return limiter_pb2.DecideRequest(domain=domain, descriptors=[descriptor], refuse_unknown_measures=True)


def ask(edge: str, request: limiter_pb2.DecideRequest, peek: bool) -> limiter_pb2.DecideResponse:
    """Ask the edge. UnavailableError: it cannot be reached; InputError: it says the request is wrong."""
    with grpc.insecure_channel(edge, options=CHANNEL_OPTIONS) as channel:
        stub = limiter_pb2_grpc.LimiterStub(channel)
        call = stub.Peek if peek else stub.Decide
        try:
            return call(request, timeout=TIMEOUT_S)
        except grpc.RpcError as error:
            if error.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND):
                raise InputError(str(error.details())) from error
            raise UnavailableError(unanswered(edge, error.code(), error.details() or "")) from error


def unanswered(edge: str, code: grpc.StatusCode, details: str) -> str:
    """What to tell a person who got no decision, without the library's own words for it."""
    said = details.lower()
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return f"edge {edge} did not answer within {TIMEOUT_S:.0f} s; is that an edge's --rls address?"
    if code in (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL) or "http" in said:
        return f"something answers at {edge}, but it is not an edge's --rls address"
    if "resolving" in said or "resolution" in said:
        return f"edge {edge} cannot be reached: its host is not known; name an edge's --rls address"
    why = "nothing listens there" if "refused" in said or "no such file" in said else "there is no connection"
    return f"edge {edge} cannot be reached: {why}; is it running, with --rls {edge}?"


def as_text(decision: Decision) -> str:
    """The answer for a person: one line for the decision, one for each rule."""
    lines = ["allowed" if decision.allowed else "refused"]
    if not decision.verdicts:
        lines[0] += ", no rule limits it"
    for verdict in decision.verdicts:
        facts = verdict_object(verdict)
        if verdict.allowed:
            del facts["retry_after"]  # there is nothing to wait for
        told = [(name, fact) for name, fact in facts.items() if fact is not None and fact is not False and fact != []]
        words = [f"{name.replace('_', ' ')} {fact}" for name, fact in told]  # 0 is said: nothing remains
        lines.append("  " + ", ".join(words))
    return "\n".join(lines)
