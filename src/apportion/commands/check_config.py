"""`apportion check-config`: read rules files as the region would, and say what they mean. Changes nothing."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from apportion.commands.mapped import unmet
from apportion.core.bounds import Bound, StoreKind, bound_of, limit_text
from apportion.core.bounds_edge import edge_warning
from apportion.core.bounds_period import most_around_reset, period_words, refuse_unkept, resets_sentence, subject_resets
from apportion.core.bounds_stages import stages_text
from apportion.core.document import Problem
from apportion.core.errors import InputError, RulesError
from apportion.core.limit import PeriodAnchor, PeriodLimit, RateLimit, Unlimited
from apportion.core.match_reasons import Crossing, Reasons, crossings, reasons
from apportion.core.patterns import pattern_text
from apportion.core.quantities import duration_text, period_text
from apportion.core.rule import Domain, Enforce, Rule, RuleSet
from apportion.core.threshold import slack_text
from apportion.edge.check_request import CheckMapping, parse_mapping
from apportion.process import ExitCode
from apportion.region.store_url import open_store
from apportion.rules_path import load_rules

WIDTH_PIPED = 160
"""Columns where nobody says how wide the output is."""

CROSSINGS_SHOWN_MAX = 20
MISSES_SHOWN_MAX = 20
"""Rules that do not fit a --request and are listed; the rest is counted."""


def check_config(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A rules file, or a folder of *.yaml and *.yml.")],
    store: Annotated[
        str | None,
        typer.Option(
            "--store", metavar="URL", help="The region's store, memory: or sqlite:///PATH, for its part of the bound."
        ),
    ] = None,
    request: Annotated[
        list[str] | None,
        typer.Option(
            "--request",
            metavar="K=V,...",
            help="Dimensions of a request: show which rules apply, and why. May be repeated. A comma in a value is \\,",
        ),
    ] = None,
    check_headers: Annotated[
        str | None,
        typer.Option(
            "--check-headers",
            metavar="DIMENSION=HEADER,...",
            help="What the edges will be started with: warn if no rule can match it.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check rules files, and print each rule with what it allows and by how much it can be exceeded.

    Exit code 0: the rules are good. 2: they, or the flags, are not; every problem is printed.

    \b
    Examples:
        apportion check-config rules.yaml
        apportion check-config rules/ --store sqlite:///region.db
        apportion check-config rules.yaml --request tenant=contoso,api=search
    """  # noqa: D301  (the mark has the lines stay as they are)
    try:
        kind = _store_kind(store)
        requests = [parse_request(text) for text in request or []]
        mapping = CheckMapping(parse_mapping(check_headers) if check_headers is not None else ())
        rules = load_rules(path)
        if kind is StoreKind.MEMORY:
            refuse_unkept(rules.rules, "in the store `memory:`")
    except InputError as error:
        _print_problems(error, path, as_json)
        raise typer.Exit(ExitCode.WRONG_INPUT) from None
    warning = unmet(rules, mapping)
    if as_json:
        typer.echo(json.dumps(_report(rules, kind, requests) | ({"warning": warning} if warning else {}), indent=2))
        return
    _print_report(rules, kind, requests)
    if warning:
        _say(_console(stderr=True), f"warning: {warning}", style="yellow")


def parse_request(text: str) -> dict[str, str]:
    """`tenant=contoso,api=search` as dimensions. InputError: it is not that."""
    dimensions: dict[str, str] = {}
    for part in re.split(r"(?<!\\),", text):
        name, equals, value = part.replace("\\,", ",").partition("=")
        if not equals or not name:
            raise InputError(f"--request {text!r}: found {part!r}; write DIMENSION=VALUE, joined by commas")
        if name in dimensions:
            raise InputError(f"--request {text!r}: the dimension {name!r} is there twice")
        dimensions[name] = value
    return dimensions


def _store_kind(url: str | None) -> StoreKind | None:
    if url is None:
        return None
    open_store(url)  # only checks the URL; nothing is opened before `await store.open()`
    return StoreKind(url.partition(":")[0])


def _report(rules: RuleSet, store: StoreKind | None, requests: list[dict[str, str]]) -> dict[str, Any]:
    return {
        "digest": rules.digest,
        "rules": [
            _rule_report(rule, bound_of(rule, store, rules.edges_max))
            for domain in _domains(rules)
            for rule in _sorted(domain)
        ],
        "warnings": [{"domain": rule.domain, "rule": rule.name, "text": text} for rule, text in _warnings(rules)],
        "crossings": [
            {"domain": domain.name, "rules": [crossing.one.name, crossing.other.name], "request": crossing.dimensions}
            for domain in _domains(rules)
            for crossing in crossings(domain, CROSSINGS_SHOWN_MAX)
        ],
        "requests": [
            {
                "request": request,
                "domain": domain.name,
                "applied": [_reasons_report(answer, request) for answer in answers if answer.applies],
                "set_aside": [_reasons_report(answer, request) for answer in answers if answer.set_aside_for],
            }
            for request in requests
            for domain in _domains(rules)
            for answers in [reasons(domain, request, whole=False)]
        ],
    }


def _rule_report(rule: Rule, bound: Bound) -> dict[str, Any]:
    limit = None if isinstance(rule.limit, Unlimited) else rule.limit
    return {
        "domain": rule.domain,
        "rule": rule.name,
        "file": rule.place.file,
        "line": rule.place.line,
        "match": {name: [pattern_text(pattern) for pattern in patterns] for name, patterns in rule.match},
        "key": list(rule.key),
        "enforce": rule.enforce.value if limit else None,
        "divided": rule.divided,
        "limit": limit_text(rule),
        "limit_per_second": limit.per_second if limit else None,
        "burst": limit.burst if isinstance(limit, RateLimit) else None,
        "quota": _quota_report(limit, rule.key) if isinstance(limit, PeriodLimit) else None,
        **_threshold_report(rule),
        "cost_default": rule.cost_default,
        "cost_max": rule.cost_max,
        "when_unavailable": [stages_text((stage,)) for stage in rule.when_unavailable],
        "shadow": rule.shadow,
        "counts": rule.counts,
        "plan": rule.plan or None,
        "deadline_ms": rule.deadline_ns / 1e6,
        "bound": bound.units,
        "bound_sentence": bound.sentence,
    }


def _quota_report(limit: PeriodLimit, key: tuple[str, ...]) -> dict[str, Any]:
    """What a quota of a period says of its periods."""
    calendar = limit.anchor is PeriodAnchor.CALENDAR
    return {
        "allowance": limit.units,
        "period": limit.period_text,
        "anchor": limit.anchor.value,
        "time_zone": limit.zone if calendar else None,
        "time_zone_from_tenant": limit.zone_from_tenant,
        "month_from_tenant": limit.month_from_tenant,
        "resets": resets_sentence(limit, key),
        "around_reset": most_around_reset(limit),
        "audit_periods": limit.audit_periods,
    }


def _threshold_report(rule: Rule) -> dict[str, Any]:
    """What the rule says of its threshold at each edge."""
    each = rule.at_each_edge
    return {
        "slack": slack_text(rule.slack) if rule.slack is not None else None,
        "at_each_edge": f"{each.units}/{period_text(each.period_ns)}" if each else None,
        "wrong_costs": rule.wrong_costs.value if rule.wrong_costs else None,
        "edges_max": rule.edges_max,
    }


def _reasons_report(answer: Reasons, request: dict[str, str]) -> dict[str, Any]:
    other = answer.set_aside_for
    report = {"rule": answer.rule.name, "why": answer.why, **({"set_aside_for": other.name} if other else {})}
    rule = _rule_for(answer.rule, request)
    if answer.applies and isinstance(rule.limit, PeriodLimit):
        report |= {"limit": limit_text(rule), "resets": subject_resets(rule.limit)}
    return report


def _rule_for(rule: Rule, request: dict[str, str]) -> Rule:
    """The rule as it counts for a request that it applies to: on the tenant's plan, by the tenant's calendar."""
    return rule.for_key([request.get(name) for name in rule.key])


def _print_report(rules: RuleSet, store: StoreKind | None, requests: list[dict[str, str]]) -> None:
    console = _console()
    for domain in _domains(rules):
        edges = f", at most {domain.edges_max} edges" if domain.edges_max is not None else ""
        _say(console, f"domain {domain.name}: {_counted(len(domain.rules), 'rule')}{edges}", style="bold")
        console.print(_table(domain, store, rules.edges_max))
        for rule in _sorted(domain):
            console.print(Text.assemble((_label(rule), "bold"), ": ", bound_of(rule, store, rules.edges_max).sentence))
        for crossing in crossings(domain, CROSSINGS_SHOWN_MAX):
            _say(console, _crossing_text(crossing), style="yellow")
        for request in requests:
            _print_request(console, domain, request)
    for rule, text in _warnings(rules):
        _say(console, f"warning: {rule.place.file}:{rule.place.line}: {rule.name}: {text}", style="yellow")
    _say(console, _proxy_text(rules), style="yellow")
    _say(console, "The rules are good.", style="green")


def _warnings(rules: RuleSet) -> list[tuple[Rule, str]]:
    """Rules that are kept, with what is to be said against them."""
    found = [(rule, _warning(rule)) for domain in _domains(rules) for rule in _sorted(domain)]
    return [(rule, text) for rule, text in found if text is not None]


def _warning(rule: Rule) -> str | None:
    return edge_warning(rule, rule.limit) if isinstance(rule.limit, RateLimit) else None


def _proxy_text(rules: RuleSet) -> str:
    longest = max(rule.deadline_ns for rule in rules.rules)
    return (
        f"Set the timeout of the proxy in front above the deadline, {duration_text(longest)}: "
        "Envoy's default is 20ms, after which it allows."
    )


def _table(domain: Domain, store: StoreKind | None, edges_max: int | None) -> Table:
    table = Table()
    for heading in ("rule", "enforce", "limit", "burst", "cost", "key", "bound by label", "at"):
        table.add_column(heading, overflow="fold")
    for rule in _sorted(domain):
        limit = None if isinstance(rule.limit, Unlimited) else rule.limit
        of_rate = isinstance(limit, RateLimit)
        undivided = " (undivided)" if of_rate and rule.enforce is Enforce.LEASE and not rule.divided else ""
        table.add_row(
            Text(_label(rule)),
            Text(rule.enforce.value + undivided if limit else "-"),
            Text(limit_text(rule)),
            str(limit.burst) if isinstance(limit, RateLimit) else "-",
            f"{rule.cost_default} {rule.counts}" + (f", at most {rule.cost_max}" if rule.cost_max is not None else ""),
            Text(", ".join(rule.key) or "one for all"),
            _bound_text(rule, bound_of(rule, store, edges_max)),
            Text(f"{rule.place.file}:{rule.place.line}"),
        )
    return table


def _bound_text(rule: Rule, bound: Bound) -> str:
    """The bound in a column: of one label, or of one period."""
    limit = rule.limit
    if isinstance(limit, Unlimited):
        return "-"
    if bound.units is None:
        return "no bound"
    if isinstance(limit, RateLimit):
        return str(bound.units)
    per = "in any" if limit.anchor is PeriodAnchor.ROLLING else "each" if limit.multiple > 1 else "a"
    return f"{bound.units} {per} {period_words(limit)}"


def _print_request(console: Console, domain: Domain, request: dict[str, str]) -> None:
    answers = reasons(domain, request, whole=False)
    over_rls = {answer.rule.name for answer in reasons(domain, request, whole=True) if answer.applies}
    _say(console, f"request {_request_text(request)}", style="bold")
    for answer in answers:
        if answer.applies:
            key = ", ".join(f"{name}={request[name]}" for name in answer.rule.key) or "one count for all"
            rls = (
                ""
                if answer.rule.name in over_rls
                else "; not over RLS, whose descriptor must have exactly the rule's dimensions"
            )
            _say(console, f"  applies    {answer.rule.name} (key: {key}): {answer.why}{rls}", style="green")
            rule = _rule_for(answer.rule, request)
            if isinstance(rule.limit, PeriodLimit):
                _say(console, f"             {limit_text(rule)}; {subject_resets(rule.limit)}", style="green")
    for answer in answers:
        if answer.set_aside_for:
            _say(console, f"  set aside  {answer.rule.name}: {answer.why}", style="yellow")
    misses = [answer for answer in answers if not answer.applies and answer.set_aside_for is None]
    for answer in misses[:MISSES_SHOWN_MAX]:
        _say(console, f"  not        {answer.rule.name}: {answer.why}", style="dim")
    if len(misses) > MISSES_SHOWN_MAX:
        _say(console, f"  not        {_counted(len(misses) - MISSES_SHOWN_MAX, 'more rule')}", style="dim")
    if not any(answer.applies for answer in answers):
        _say(console, "  no rule applies: the request is allowed, and nothing is counted", style="yellow")


def _crossing_text(crossing: Crossing) -> str:
    return (
        f"{crossing.one.name} and {crossing.other.name} cross: neither is more specific, so both apply to "
        f"{_request_text(crossing.dimensions)}"
    )


def _request_text(dimensions: dict[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in dimensions.items())


def _print_problems(error: InputError, path: str, as_json: bool) -> None:
    problems = [problem for problem in getattr(error, "problems", ()) if isinstance(problem, Problem)]
    if as_json:
        listed = [
            {"file": problem.place.file, "line": problem.place.line, "path": problem.place.path, "text": problem.text}
            for problem in problems
        ]
        typer.echo(
            json.dumps({"problems": listed or [{"file": path, "line": None, "path": "", "text": str(error)}]}, indent=2)
        )
        return
    console = _console(stderr=True)
    for line in str(error).splitlines():
        _say(console, line)
    if isinstance(error, RulesError):
        _say(console, f"{path}: {_counted(len(error.problems), 'problem')}; nothing of it would be loaded", style="red")


def _domains(rules: RuleSet) -> list[Domain]:
    return [rules.domains[name] for name in sorted(rules.domains)]


def _sorted(domain: Domain) -> list[Rule]:
    """The rules by name, each as it is on every plan."""
    return [on_plan for rule in sorted(domain.rules, key=lambda rule: rule.name) for on_plan in rule.on_plans]


def _label(rule: Rule) -> str:
    return rule.name + (f" ({rule.plan})" if rule.plan else "") + (" (shadow)" if rule.shadow else "")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _console(stderr: bool = False) -> Console:
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = WIDTH_PIPED
    return console


def _say(console: Console, text: str, style: str = "") -> None:
    """One line, whatever its length; brackets in it are text."""
    console.print(Text(text, style=style), soft_wrap=True)
