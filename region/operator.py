"""The rules files and what an operator laid over them: what is in force is both, under one version (design 8).

A shell. Every change of either is made here, one after the other: composed, numbered and kept by the store, then handed
on. An override ends at its time by the store's clock, also if the region was away then.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches

import structlog

from apportion.core.errors import InputError, StoreError
from apportion.core.key import VALUE_LITERAL_MAX
from apportion.core.last_good import Texts
from apportion.core.limit import PeriodLimit, Unlimited
from apportion.core.messages import Rules
from apportion.core.overrides import ALL_RULES, OVERRIDES_MAX, TEXT, Override, Target, coverage, decode, encode
from apportion.core.rule import Rule, RuleSet
from apportion.core.rules_file import parse_rules
from apportion.region.lowering import until_text
from apportion.region.store import Store

log = structlog.get_logger("apportion.region")

LASTING_NS_MAX = 31 * 86_400 * 1_000_000_000
TOO_LONG = "--for is at most 31d: an override is for a while; write what is to stay into the rules file"

NO_RATE = (
    "has a quota, and a rate cannot lower an allowance: --rate 0/s blocks it, --shadow has it refuse nobody; for a "
    "smaller allowance change the rules"
)

WORDS_MAX = 500
"""Characters of `why` and of `who`: they go to every edge."""

RETRY_NS = 1_000_000_000
"""What a store that failed is left alone for, before what has ended is taken off again."""

Adopt = Callable[[Rules, RuleSet], None]


class Operator:
    """`laid`: the overrides in force. `adopt` is told of everything that is in force from then on."""

    def __init__(self, store: Store, files: Texts, ruleset: RuleSet, adopt: Adopt) -> None:
        self.laid: tuple[Override, ...] = ()
        self.files = files
        self.ruleset = ruleset
        self._store = store
        self._adopt = adopt
        self._kept = ""
        self._covered: Counter[Target] = Counter()
        self._changing = asyncio.Lock()
        self._not_before_ns = 0

    async def begin(self) -> tuple[Rules, RuleSet]:
        """What is in force at the start. StoreError: the store cannot be read."""
        self._kept = await self._store.overrides()
        try:
            kept = decode(self._kept) if self._kept else ()
        except InputError as error:
            log.error("overrides_lost", reason=str(error))
            kept = ()
        now_ns = self._store.now_ns()
        self.laid = tuple(each for each in kept if each.until_ns > now_ns)
        if self.laid != kept:
            self._kept = encode(self.laid) if self.laid else ""
            await self._store.keep_overrides(self._kept)
        for each in kept:
            if each not in self.laid:
                log.info("override_ended", **_told(each))
        self._covered = coverage(self.ruleset.domains, self.laid)
        return await self._numbered(self.files, self.ruleset, self.laid)

    async def change_files(self, files: Texts, ruleset: RuleSet) -> int:
        """Let other rules files be in force; returns the version. StoreError: they are not."""
        async with self._changing:
            version = await self._put(files, ruleset, self.laid)
            self.files, self.ruleset = files, ruleset
            return version

    async def lay(self, wanted: Override) -> tuple[Override, int]:
        """Lay an override, in the place of one over the same keys; returns it with its domain, and the version.

        InputError says what is wrong with it. StoreError: nobody knows whether it is in force after a restart.
        """
        async with self._changing:
            override = checked(self.ruleset, wanted, self._store.now_ns())
            others = tuple(each for each in self.laid if each.target != override.target)
            if len(others) >= OVERRIDES_MAX:
                raise InputError(f"there are {OVERRIDES_MAX} overrides, which is the most; clear some first")
            version = await self._put(self.files, self.ruleset, (*others, override))
            log.warning("override_laid", **_told(override))
            return override, version

    async def clear(self, target: Override) -> tuple[Override, int]:
        """Take off the override over the keys of `target`; returns it and the version. InputError: there is none."""
        _check_words("--who", target.who)
        if target.why:
            _check_words("--why", target.why)
        async with self._changing:
            found = [each for each in self.laid if _is_meant(each, target)]
            if len(found) != 1:
                raise InputError(_none_or_many(self.laid, target, found))
            version = await self._put(self.files, self.ruleset, tuple(each for each in self.laid if each != found[0]))
            cleared = {"cleared_by": target.who, **({"cleared_why": target.why} if target.why else {})}
            log.warning("override_cleared", **_told(found[0]), **cleared)
            return found[0], version

    def due(self, now_ns: int) -> bool:
        """Whether `end` is to be called."""
        ended = any(each.until_ns <= now_ns for each in self.laid)
        return ended and now_ns >= self._not_before_ns and not self._changing.locked()

    async def end(self) -> None:
        """Take off what has ended."""
        async with self._changing:
            now_ns = self._store.now_ns()
            ended = [each for each in self.laid if each.until_ns <= now_ns]
            self._not_before_ns = now_ns + RETRY_NS
            try:
                await self._put(self.files, self.ruleset, tuple(each for each in self.laid if each not in ended))
            except StoreError as error:
                log.error("store_failed", operation="keep_overrides", reason=str(error))
                return
            self._not_before_ns = 0
            for each in ended:
                log.info("override_ended", **_told(each))

    def covered(self, override: Override) -> int:
        """Over how many rules it is laid now."""
        return self._covered[override.target]

    async def _put(self, files: Texts, ruleset: RuleSet, laid: tuple[Override, ...]) -> int:
        rules, effective = await self._numbered(files, ruleset, laid)
        text = encode(laid) if laid else ""
        if text != self._kept:
            await self._store.keep_overrides(text)
        self._kept, self.laid, self._covered = text, laid, coverage(ruleset.domains, laid)
        self._adopt(rules, effective)
        return rules.version

    async def _numbered(self, files: Texts, ruleset: RuleSet, laid: tuple[Override, ...]) -> tuple[Rules, RuleSet]:
        if laid:
            files = (*files, (TEXT, encode(laid)))
            ruleset = await asyncio.to_thread(parse_rules, files)
        return Rules(await self._store.rules_version(ruleset.digest), files), ruleset


def checked(ruleset: RuleSet, wanted: Override, now_ns: int) -> Override:
    """`wanted` with its domain, if it can be laid over these rules. InputError names what is wrong."""
    _check_words("--why", wanted.why)
    _check_words("--who", wanted.who)
    if not now_ns < wanted.until_ns <= now_ns + LASTING_NS_MAX:
        raise InputError(TOO_LONG)
    if (wanted.rate is not None) is wanted.shadow:
        raise InputError("give one of --rate and --shadow: a lower number, or a rule that refuses nobody")
    for name, value in wanted.key:
        if len(value.encode()) > VALUE_LITERAL_MAX:
            raise InputError(f"{name}: a value has at most {VALUE_LITERAL_MAX} bytes here; lay it over the whole rule")
    if wanted.rule == ALL_RULES:
        return _checked_for_all(ruleset, wanted)
    rules = _named(ruleset, wanted.domain, wanted.rule)
    if len(rules) > 1:
        domains = ", ".join(repr(rule.domain) for rule in rules)
        raise InputError(f"several domains have a rule {wanted.rule!r}; give --domain, one of {domains}")
    (rule,) = rules
    for name, _ in wanted.key:
        if name not in rule.key:
            raise InputError(f"rule {rule.name!r} has no {name!r} in its key: it counts by {_listed(rule.key)}")
    if wanted.rate is not None and wanted.rate.units and all(_is_unlimited(each) for each in rule.on_plans):
        raise InputError(f"rule {rule.name!r} is unlimited: it counts nothing, so only --rate 0/s can be laid over it")
    if wanted.rate is not None and wanted.rate.units and _has_allowance(rule):
        raise InputError(f"rule {rule.name!r} {NO_RATE}")
    if wanted.shadow and rule.shadow:
        raise InputError(f"rule {rule.name!r} is a shadow already: it refuses nobody")
    return replace(wanted, domain=rule.domain)


def _check_words(name: str, words: str) -> None:
    if not words.strip() or len(words) > WORDS_MAX or not words.isprintable():
        raise InputError(f"{name} is a text of 1 to {WORDS_MAX} printable characters, for the audit line")


def _checked_for_all(ruleset: RuleSet, wanted: Override) -> Override:
    if wanted.domain and wanted.domain not in ruleset.domains:
        raise InputError(f"there is no domain {wanted.domain!r}; the rules have {_listed(sorted(ruleset.domains))}")
    if wanted.rate is not None and not wanted.key:
        raise InputError("'*' without dimensions goes with --shadow only; name a rule, or the key that is meant")
    names, covered = _listed([name for name, _ in wanted.key]), list(filter(wanted.covers, ruleset.rules))
    if not covered:
        raise InputError(f"no rule has {names} in its key")
    if wanted.rate is not None and wanted.rate.units and all(map(_has_allowance, covered)):
        raise InputError(f"each rule with {names} in its key {NO_RATE}")
    return wanted


def _named(ruleset: RuleSet, domain: str, name: str) -> list[Rule]:
    """The rules of that name. InputError: there is none."""
    rules = [rule for each in ruleset.domains.values() for rule in each.rules if domain in ("", each.name)]
    found = [rule for rule in rules if rule.name == name]
    if found:
        return found
    known = sorted({rule.name for rule in rules})
    near = get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there is {_listed(known[:20])}"
    raise InputError(f"there is no rule {name!r}{f' in the domain {domain!r}' if domain else ''}; {hint}")


def _has_allowance(rule: Rule) -> bool:
    return any(isinstance(each.limit, PeriodLimit) for each in rule.on_plans)


def _is_unlimited(rule: Rule) -> bool:
    return isinstance(rule.limit, Unlimited)


def _is_meant(override: Override, target: Override) -> bool:
    return override.target[1:] == target.target[1:] and target.domain in ("", override.domain)


def _none_or_many(laid: tuple[Override, ...], target: Override, found: list[Override]) -> str:
    if found:
        return f"several domains have this override; give --domain, one of {_listed([each.domain for each in found])}"
    listed = "; ".join(map(str, laid[:5])) + (" ..." if len(laid) > 5 else "")
    return f"there is no such override{f'; there is {listed}' if laid else ', nor any other'}"


def _listed(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(map(repr, names)) or "nothing"


def _told(override: Override) -> dict[str, object]:
    """The audit line: what, until when, why, by whom."""
    return {
        "domain": override.domain,
        "rule": override.rule,
        "key": dict(override.key),
        **({"rate": str(override.rate)} if override.rate is not None else {"shadow": True}),
        "until": until_text(override),
        "why": override.why,
        "who": override.who,
    }
