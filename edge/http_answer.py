"""What the HTTP door says: statuses, bodies, and one table from errors to statuses. Decides nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping

from aiohttp import web

from apportion.core.decision import Decision, Reason
from apportion.core.errors import ApportionError, InputError, UnavailableError
from apportion.edge.decide_request import FieldError
from apportion.edge.http_fields import decision_fields, is_shortage
from apportion.guarding import NotFoundError

UNAVAILABLE_RETRY_S = "1"
"""`Retry-After` of a request that no rules are there for yet: an edge tries several times a second to get them."""

SERVER = "apportion"
"""The `Server` field: unless given, it tells the versions of what this program runs on."""

INTERNAL_ERROR = "internal error; the server's log has it"
"""All that a caller is told of a fault of ours."""

TEXT_MAX = 1_000
"""Characters of an error's text; what callers sent is repeated cut in it anyway."""

_PROBLEM = "https://iana.org/assignments/http-problem-types#"


def check_answer(decision: Decision, decision_id: str) -> web.Response:
    """The answer to `/check`: 200, or 429, or 503 where nobody could decide; the fields say why and for how long."""
    fields = decision_fields(decision, decision_id)
    fields["Cache-Control"] = "no-store"
    if decision.allowed:
        return web.Response(headers=fields)
    violated = [verdict.rule.name for verdict in decision.verdicts if not verdict.allowed and not verdict.shadow]
    if is_shortage(decision):
        kind, title, status = "temporary-reduced-capacity", "the limit could not be checked", 503
    else:
        kind, title, status = "quota-exceeded", "the limit is used up", 429
        if decision.reason == Reason.IMPOSSIBLE.value:
            title = "the request costs more than is ever admitted"
        elif decision.reason == Reason.UNLISTED.value:
            title = "the tenant is on no plan"
    problem = {"type": _PROBLEM + kind, "title": title, "status": status, "violated-policies": violated}
    return json_answer(problem, status, fields, content_type="application/problem+json")


def error_answer(error: Exception) -> web.Response | None:
    """The answer to an error that is the caller's, or of the moment; None for a fault of ours."""
    if isinstance(error, FieldError):
        return refusal(400, str(error), field=error.field)
    if isinstance(error, NotFoundError):
        return refusal(404, str(error))
    if isinstance(error, InputError):
        return refusal(400, str(error))
    if isinstance(error, UnavailableError):
        fields = {"Retry-After": UNAVAILABLE_RETRY_S, "X-Apportion-Reason": Reason.UNAVAILABLE.value}
        return refusal(503, str(error), headers=fields)
    if isinstance(error, ApportionError):
        return refusal(503, str(error))
    return None


def refusal(
    status: int, text: str, *, field: str | None = None, headers: Mapping[str, str] | None = None
) -> web.Response:
    """An error as JSON: `error` for people, `field` where one of the request's is wrong."""
    cut = text if len(text) <= TEXT_MAX else text[: TEXT_MAX - 3] + "..."
    return json_answer({"error": cut} if field is None else {"error": cut, "field": field}, status, headers)


def json_answer(
    body: Mapping[str, object],
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    content_type: str = "application/json",
) -> web.Response:
    """A JSON object, all of it ASCII, on one line."""
    raw = json.dumps(body).encode("ascii") + b"\n"
    return web.Response(body=raw, status=status, headers=headers, content_type=content_type)
