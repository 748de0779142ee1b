"""Rules files in, a RuleSet out, or one report of everything that is wrong with all of them (design 4). Pure.

Takes texts, never paths: who reads the disk, or gets the texts over the wire, is a shell's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b

from apportion.core.candidates import is_candidate, read_candidate
from apportion.core.document import MappingNode, Node, Problem, kind_of, read_document
from apportion.core.errors import InputError, RulesError
from apportion.core.limit import PeriodLimit, RateLimit
from apportion.core.match import SHAPES_MAX, Shape, entries
from apportion.core.overrides import TEXT as OVERRIDES
from apportion.core.overrides import decode, overlaid
from apportion.core.plan_rules import from_plan, made_one, missing_tenants, read_for_plans
from apportion.core.quantities import NUMBER_MAX, period_text, shown
from apportion.core.rule import Domain, Place, Rule, RuleSet
from apportion.core.rule_edge import finish_rules
from apportion.core.rule_entry import DEADLINE_NS_DEFAULT, Defaults, read_deadline, read_rule
from apportion.core.rule_fields import Section
from apportion.core.rule_limit import Costs, read_cost
from apportion.core.rule_match import name_problem
from apportion.core.rule_stages import missing_edges_max, share_of_quota
from apportion.core.rules_vocabulary import DEFAULTS, RULE, RULE_LATER, TOP, TOP_LATER
from apportion.core.tenancy import REFUSE
from apportion.core.tenancy_file import TABLE, TenancyDraft
from apportion.core.time_zones import zone_problem

VERSION = 1
"""The version of the format that this program reads."""

FILES_MAX = 1000
"""Files of one rule set."""

RULES_MAX = 10_000
"""Rules of one domain."""

ENTRIES_MAX = 200_000
"""Combinations of patterns of one domain, over all its rules; bounds the matcher's memory."""

DOMAIN_NAME_MAX = 128
"""Characters: Envoy's users name domains freely."""

EDGES_MAX_MAX = 100_000
"""The largest `edges_max`."""

PROBLEMS_MAX = 500
"""Problems of one report; after so many the file is something else than a rules file."""


@dataclass(slots=True)
class _Draft:
    """A domain while its files are read."""

    rules: list[Rule] = field(default_factory=list)
    names: dict[str, Place] = field(default_factory=dict)
    edges_max: tuple[int, Place] | None = None
    entries: dict[str, MappingNode] = field(default_factory=dict)
    late: list[tuple[Section, MappingNode, Defaults]] = field(default_factory=list)
    limit_names: dict[str, str] = field(default_factory=dict)
    tenancy: TenancyDraft = field(default_factory=TenancyDraft)


def parse_rules(texts: Sequence[tuple[str, str]]) -> RuleSet:
    """The rules of these (name, text) pairs, whose order does not matter. RulesError: every problem of all files.

    One pair may be what an operator laid over the files (`overrides.py`).
    """
    ruleset = _parse_files([(name, text) for name, text in texts if name != OVERRIDES])
    laid = [text for name, text in texts if name == OVERRIDES]
    if not laid:
        return ruleset
    try:
        overrides = decode(laid[0])
    except InputError as error:
        raise RulesError((Problem(Place(OVERRIDES, 1), str(error)),)) from error
    return RuleSet(overlaid(ruleset.domains, overrides), digest_of(texts))


def _parse_files(texts: Sequence[tuple[str, str]]) -> RuleSet:
    problems: list[Problem] = []
    drafts: dict[str, _Draft] = {}
    if not texts:
        problems.append(Problem(Place("rules", 1), "there is no rules file"))
    if len(texts) > FILES_MAX:
        problems.append(Problem(Place("rules", 1), f"there are {len(texts)} rules files, the most is {FILES_MAX}"))
    ordered = sorted(texts) if len(texts) <= FILES_MAX else []
    tables = {name: text for name, text in ordered if name.endswith(TABLE)}
    ordered = [(name, text) for name, text in ordered if name not in tables]
    reports: list[list[Problem]] = []
    for former, (name, text) in zip([("", ""), *ordered], ordered, strict=False):
        if former[0] == name and len(ordered) > 1:
            problems.append(Problem(Place(name, 1), "two rules files have this name"))
        reports.append([])
        _read_file(name, text, drafts, tables, reports[-1])
    tenancies = {name: draft.tenancy.finish(problems) for name, draft in drafts.items()}
    for domain, draft in drafts.items():
        _read_late(draft, domain)
    for found in reports:
        problems += sorted(found, key=lambda problem: problem.place.line)
    for draft in drafts.values():
        problems += missing_edges_max(draft.rules, draft.edges_max[0] if draft.edges_max else None)
        problems += share_of_quota(draft.rules)
        problems += missing_tenants(draft.rules, bool(draft.tenancy.tenants) or draft.tenancy.wrong)
        draft.rules = finish_rules(draft.rules, draft.edges_max[0] if draft.edges_max else None, problems)
        problems += _find_duplicates(draft)
    if problems:
        raise RulesError(_bounded(list(dict.fromkeys(problems))))  # what is wrong with a rule on several plans, once
    domains = {
        name: Domain(
            name,
            made_one(draft.rules, tenancies[name], draft.limit_names),
            draft.edges_max[0] if draft.edges_max else None,
        )
        for name, draft in sorted(drafts.items())
    }
    return RuleSet(domains, digest_of(texts))


def _bounded(problems: list[Problem]) -> tuple[Problem, ...]:
    """The first PROBLEMS_MAX problems, and a last one that says so when there are more."""
    if len(problems) <= PROBLEMS_MAX:
        return tuple(problems)
    place = problems[PROBLEMS_MAX].place
    return (
        *problems[:PROBLEMS_MAX],
        Problem(place, "from here on more problems are left out; mend the first ones first"),
    )


def digest_of(texts: Sequence[tuple[str, str]]) -> str:
    """What names a set of rules files: BLAKE2b-256 over names and texts in the order of names, each with its length."""
    digest = blake2b(digest_size=32)
    for name, text in sorted(texts):
        for part in (name, text):
            raw = part.encode("utf-8", "surrogatepass")
            digest.update(len(raw).to_bytes(8, "big") + raw)
    return digest.hexdigest()


def _read_file(
    file: str, text: str, drafts: dict[str, _Draft], tables: Mapping[str, str], problems: list[Problem]
) -> None:
    """Read one file into the draft of its domain."""
    root = read_document(file, text, problems)
    if root is None:
        return
    if not isinstance(root, MappingNode):
        problems.append(
            Problem(Place(file, root.line), f"found {kind_of(root)}, a mapping with version, domain and rules is meant")
        )
        return
    top = Section(file, "", root, TOP, TOP_LATER, problems)
    _check_version(top)
    zone = _read_time_zone(top)
    domain = _read_domain(top)
    # A file whose domain cannot be read is still read to its end, for the sake of the report.
    draft = drafts.setdefault(domain, _Draft()) if domain else _Draft()
    _read_edges_max(top, draft)
    draft.tenancy.read(top, tables)
    defaults = replace(_read_defaults(top), time_zone=zone)
    items = top.items("rules", "a list of rules", RULES_MAX)
    if not top.has("rules"):
        top.refuse("rules", "missing; a rules file has a list of rules")
    elif items == ():
        top.refuse("rules", "is empty; a file without a rule limits nothing, so leave the file out")
    for index, item in enumerate(items or ()):
        if len(problems) > PROBLEMS_MAX:
            break
        _read_rule_item(top, index, item, domain or "", draft, defaults)
    if (count := len(draft.rules) + len(draft.late)) > RULES_MAX:
        top.refuse("rules", f"the domain has {count} rules with these, the most is {RULES_MAX}")
        draft.rules.clear()
        draft.late.clear()


def _read_rule_item(top: Section, index: int, item: Node, domain: str, draft: _Draft, defaults: Defaults) -> None:
    if not isinstance(item, MappingNode):
        place = Place(top.file, item.line, f"rules[{index}]")
        top.problems.append(
            Problem(place, f"found {kind_of(item)}, a rule is meant: a mapping with name, match, key, limit")
        )
        return
    named = next((value for key, value in item.entries if key.text == "name"), None)
    name = getattr(named, "text", "")
    path = f"rules[{name if name and name.isprintable() and len(name) <= 64 else index}]"
    rule = Section(top.file, path, item, RULE, RULE_LATER, top.problems)
    if name:
        if first := draft.names.get(name):
            rule.refuse("name", f"the name {shown(name)} is taken by the rule at {first}; names are unique in a domain")
        draft.names.setdefault(name, rule.place())
        draft.entries.setdefault(name, item)
    if is_candidate(item) or from_plan(item) is not None:  # what it is of may come later
        draft.late.append((rule, item, defaults))
        return
    built = read_rule(rule, domain, defaults)
    if built is not None:
        draft.rules.append(built)


def _read_late(draft: _Draft, domain: str) -> None:
    """Read what refers to other parts of the domain, once all of them are known: rules of plans, then candidates."""
    for own, item, defaults in sorted(draft.late, key=lambda each: is_candidate(each[1])):
        whole: MappingNode | None = item
        if is_candidate(item):
            good = {rule.name for rule in draft.rules}
            whole = read_candidate(own, item, draft.entries, good.__contains__)
        if whole is not None:
            draft.rules += _read_whole(draft, own, whole, partial(read_rule, domain=domain, defaults=defaults))


def _read_whole(draft: _Draft, own: Section, whole: MappingNode, read: Callable[[Section], Rule | None]) -> list[Rule]:
    """The rule of an entry, on each plan where its limit is from one."""
    named = from_plan(whole)
    if named is None:
        rule = read(Section(own.file, own.path, whole, RULE, RULE_LATER, own.problems))
        return [rule] if rule is not None else []
    if draft.tenancy.wrong:  # reported, and every rule would say it again
        return []
    refuses = draft.tenancy.unlisted is not None and draft.tenancy.unlisted[0] == REFUSE
    rules = read_for_plans(own, whole, draft.tenancy.plans, refuses, read)
    if rules:
        draft.limit_names[rules[0].name] = getattr(named, "text", "")
    return rules


def _check_version(top: Section) -> None:
    if not top.has("version"):
        top.refuse("version", f"missing; write version: {VERSION}")
    else:
        version = top.count("version", 0, NUMBER_MAX)
        if version is not None and version != VERSION:
            top.refuse("version", f"found {version}, this program reads version {VERSION}")


def _read_domain(top: Section) -> str | None:
    domain = top.text("domain", "a name")
    if domain is None:
        if not top.has("domain"):
            top.refuse("domain", "missing; name the domain that requests carry, such as domain: api")
        return None
    if wrong := name_problem(domain, "a domain", DOMAIN_NAME_MAX):
        top.refuse("domain", wrong)
        return None
    return domain


def _read_edges_max(top: Section, draft: _Draft) -> None:
    edges_max = top.count("edges_max", 1, EDGES_MAX_MAX)
    if edges_max is None:
        return
    former = draft.edges_max
    if former is None:
        draft.edges_max = (edges_max, top.place("edges_max"))
    elif former[0] != edges_max:
        top.refuse(
            "edges_max",
            f"found {edges_max}, but {former[1]} says {former[0]} for the same domain; write it once, or alike",
        )


def _read_time_zone(top: Section) -> str:
    """The zone of calendar periods that say none of their own."""
    zone = top.text("time_zone", "a time zone such as UTC or Europe/Berlin")
    if zone is not None and (wrong := zone_problem(zone)):
        top.refuse("time_zone", wrong)
        return "UTC"
    return zone or "UTC"


def _read_defaults(top: Section) -> Defaults:
    section = top.section("defaults", "a mapping with deadline and cost", DEFAULTS, RULE_LATER)
    if section is None:
        return Defaults()
    deadline_ns = read_deadline(section)
    cost = read_cost(section)
    if cost.default is not None and cost.most is not None and cost.default > cost.most:
        section.refuse("cost", f"`cost.default` {cost.default} is above `cost.max` {cost.most}; no request could pass")
        cost = Costs()
    return Defaults(DEADLINE_NS_DEFAULT if deadline_ns is None else deadline_ns, cost)


def _find_duplicates(draft: _Draft) -> list[Problem]:
    """Rules that count the same thing twice: equally specific, so both apply, with the same key, kind and period."""
    problems = []
    seen: dict[object, Rule] = {}
    shapes: dict[tuple[str, ...], set[Shape]] = {}
    total = 0
    counted: set[str] = set()  # a rule is the same entry of the matcher on every plan
    for rule in sorted(draft.rules, key=lambda rule: (rule.place.file, rule.place.line)):
        names = tuple(name for name, _ in rule.match)
        period = _period_text(rule)
        firsts = []
        for shape, texts in entries(rule):
            total += rule.name not in counted
            shapes.setdefault(names, set()).add(shape)
            if rule.shadow or rule.unlisted:  # it tries another limit on the same requests; it has none
                continue
            first = seen.setdefault((names, shape, texts, frozenset(rule.key), period, rule.counts, rule.plan), rule)
            if first is not rule and first not in firsts:
                firsts.append(first)
        counted.add(rule.name)
        problems += [Problem(rule.place, _duplicate_text(first, period)) for first in firsts]
        if total > ENTRIES_MAX:
            problems.append(
                Problem(rule.place, f"with this rule the domain has more than {ENTRIES_MAX} combinations of values")
            )
            break
        if len(shapes[names]) > SHAPES_MAX:
            problems.append(Problem(rule.place, _shapes_text(names)))
            break
    return problems


def _period_text(rule: Rule) -> str:
    """What a rule limits in which period, for people and to compare."""
    limit = rule.limit
    if isinstance(limit, RateLimit):
        return f"a rate per {period_text(limit.period_ns)}"
    return f"a {limit.anchor.value} quota per {limit.period_text}" if isinstance(limit, PeriodLimit) else "no limit"


def _duplicate_text(first: Rule, kind: str) -> str:
    return (
        f"duplicate of the rule {shown(first.name)} at {first.place}: both apply to the same requests, with the same "
        f"key and {kind}, of {first.counts}; keep one, or give them different matches, keys, periods or counts"
    )


def _shapes_text(names: tuple[str, ...]) -> str:
    return (
        f"with this rule the dimensions {', '.join(map(shown, names))} have more than {SHAPES_MAX} shapes of "
        "patterns (which are exact, which `*`, which prefixes of how many characters), and each is a look-up more for "
        "each request; use prefixes of fewer lengths"
    )
