"""Overrides in a region: checked, kept by the store, numbered with the rules, ended at their time."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from apportion.core.errors import InputError, StoreError
from apportion.core.limit import PeriodLimit, RateLimit
from apportion.core.messages import Rules
from apportion.core.overrides import ALL_RULES, OVERRIDES_MAX, Override, Rate
from apportion.core.rule import RuleSet
from apportion.core.rules_file import parse_rules
from apportion.region.memory_store import MemoryStore
from apportion.region.operator import LASTING_NS_MAX, Operator
from tests.in_process import SECOND

pytestmark = pytest.mark.asyncio

NOON_NS = 1_700_049_600 * SECOND
"""2023-11-15T12:00:00Z."""

FILES = (
    (
        "rules.yaml",
        """
version: 1
domain: api
rules:
  - {name: calls, match: {tenant: "*"}, key: [tenant], limit: {rate: 100/s}, enforce: region, when_unavailable: [deny]}
  - {name: open, match: {api: "*"}, key: [api], limit: {unlimited: true}}
  - {name: tried, match: {api: x}, key: [api], limit: {rate: 1/s}, enforce: region, when_unavailable: [deny],
     shadow: true}
  - {name: daily, match: {app: "*"}, key: [app], limit: {quota: 10/day, anchor: calendar}, enforce: region,
     when_unavailable: [deny]}
""",
    ),
    (
        "zz.yaml",
        """
version: 1
domain: web
rules:
  - {name: open, match: {page: "*"}, key: [page], limit: {unlimited: true}}
""",
    ),
)

BLOCK = Override("", "calls", (("tenant", "contoso"),), Rate(0, SECOND), False, NOON_NS + 60 * SECOND, "abuse", "ops")


class Failing(MemoryStore):
    """Keeps nothing while `broken`."""

    broken = False

    async def keep_overrides(self, text: str) -> None:
        if self.broken:
            raise StoreError("the disk is full")
        await super().keep_overrides(text)


class Desk:
    """An operator of a region, what it put in force, and a clock of the test."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.store = Failing(lambda: self.now_ns, lambda: NOON_NS)
        self.adopted: list[tuple[Rules, RuleSet]] = []
        self.operator = self.another()

    async def open(self) -> tuple[Rules, RuleSet]:
        """Start."""
        await self.store.open()
        return await self.operator.begin()

    def another(self) -> Operator:
        """As a region does that starts on the same store."""
        self.operator = Operator(self.store, FILES, parse_rules(FILES), lambda *both: self.adopted.append(both))
        return self.operator

    def limit(self) -> object:
        """What contoso has now."""
        rule = self.adopted[-1][1].rule("api", "calls")
        assert rule is not None
        return rule.for_key(("contoso",)).limit


async def test_what_is_laid_is_in_force_under_a_version_of_its_own_and_said_in_one_line() -> None:
    """The domain is found; the line says what, until when, why and by whom."""
    desk = Desk()
    rules, _ = await desk.open()
    with capture_logs() as logs:
        laid, version = await desk.operator.lay(BLOCK)
    assert (rules.version, rules.texts, version) == (1, FILES, 2)
    assert (laid.domain, desk.limit()) == ("api", RateLimit(0, SECOND, 0))
    assert [name for name, _ in desk.adopted[-1][0].texts] == ["rules.yaml", "zz.yaml", "/overrides"]
    assert logs == [
        {
            "event": "override_laid",
            "log_level": "warning",
            "domain": "api",
            "rule": "calls",
            "key": {"tenant": "contoso"},
            "rate": "0/s",
            "until": "2023-11-15T12:01:00Z",
            "why": "abuse",
            "who": "ops",
        }
    ]


async def test_it_ends_by_itself_at_the_stores_time() -> None:
    """Without it the rules are as they were, under a new version, for versions only rise."""
    desk = Desk()
    await desk.open()
    await desk.operator.lay(BLOCK)
    desk.now_ns = 60 * SECOND - 1
    assert not desk.operator.due(desk.store.now_ns())
    desk.now_ns += 1
    assert desk.operator.due(desk.store.now_ns())
    with capture_logs() as logs:
        await desk.operator.end()
    assert [each["event"] for each in logs] == ["override_ended"]
    assert (desk.limit(), desk.operator.laid) == (RateLimit(100, SECOND, 25), ())
    assert desk.adopted[-1][0] == Rules(3, FILES)
    assert await desk.store.overrides() == ""


async def test_a_region_that_starts_again_goes_by_what_has_not_ended() -> None:
    """Also where one ended while it was away: before any edge can attach."""
    desk = Desk()
    await desk.open()
    await desk.operator.lay(BLOCK)
    await desk.operator.lay(replace(BLOCK, key=(("tenant", "fabrikam"),), until_ns=NOON_NS + SECOND))
    desk.now_ns = 2 * SECOND
    with capture_logs() as logs:
        _, ruleset = await desk.another().begin()
        await desk.another().begin()
    assert [(each["event"], each["key"]) for each in logs] == [("override_ended", {"tenant": "fabrikam"})]
    rule = ruleset.rule("api", "calls")
    assert rule is not None
    assert [rule.for_key((tenant,)).limit for tenant in ("contoso", "fabrikam")] == [
        RateLimit(0, SECOND, 0),
        RateLimit(100, SECOND, 25),
    ]
    assert [each.key for each in desk.operator.laid] == [(("tenant", "contoso"),)]


async def test_one_over_the_same_keys_is_replaced_and_one_is_cleared_by_what_it_is_over() -> None:
    """There is one for each target; others stay."""
    desk = Desk()
    await desk.open()
    await desk.operator.lay(BLOCK)
    await desk.operator.lay(replace(BLOCK, rate=Rate(5, SECOND)))
    await desk.operator.lay(Override("", ALL_RULES, (), None, True, BLOCK.until_ns, "INC-42", "ops"))
    assert [(each.rule, each.rate) for each in desk.operator.laid] == [("calls", Rate(5, SECOND)), (ALL_RULES, None)]
    await desk.operator.clear(BLOCK)
    assert [each.rule for each in desk.operator.laid] == [ALL_RULES]
    with pytest.raises(InputError, match=re.escape("there is no such override; there is *: shadow (INC-42; ops)")):
        await desk.operator.clear(BLOCK)
    with pytest.raises(InputError, match="--who is a text"):
        await desk.operator.clear(replace(BLOCK, who=""))


async def test_rules_files_change_under_overrides() -> None:
    """They stay laid, and are over whatever the files say now."""
    desk = Desk()
    await desk.open()
    await desk.operator.lay(replace(BLOCK, rate=Rate(50, SECOND)))
    for rate, units in (("20/s", 20), ("70/s", 50)):
        files = ((FILES[0][0], FILES[0][1].replace("100/s", rate)), FILES[1])
        await desk.operator.change_files(files, parse_rules(files))
        assert desk.limit() == RateLimit(units, SECOND, 20)
    assert desk.operator.covered(desk.operator.laid[0]) == 1
    await desk.operator.change_files(FILES[1:], parse_rules(FILES[1:]))
    assert desk.operator.covered(desk.operator.laid[0]) == 0


async def test_a_store_that_fails_changes_nothing_and_what_has_ended_is_tried_again() -> None:
    """A second later; what was laid is in force until then."""
    desk = Desk()
    await desk.open()
    await desk.operator.lay(BLOCK)
    desk.store.broken = True
    with pytest.raises(StoreError):
        await desk.operator.lay(replace(BLOCK, rate=Rate(5, SECOND)))
    desk.now_ns = 60 * SECOND
    await desk.operator.end()
    assert (desk.limit(), desk.operator.due(desk.store.now_ns())) == (RateLimit(0, SECOND, 0), False)
    desk.store.broken = False
    desk.now_ns = 61 * SECOND
    assert desk.operator.due(desk.store.now_ns())
    await desk.operator.end()
    assert desk.limit() == RateLimit(100, SECOND, 25)


@pytest.mark.parametrize(
    "wrong, words",
    [
        (replace(BLOCK, rule="call"), "there is no rule 'call'; did you mean 'calls'?"),
        (replace(BLOCK, rule="open", key=()), "several domains have a rule 'open'; give --domain, one of 'api', 'web'"),
        (replace(BLOCK, domain="web"), "there is no rule 'calls' in the domain 'web'; there is 'open'"),
        (replace(BLOCK, key=(("user", "x"),)), "rule 'calls' has no 'user' in its key: it counts by 'tenant'"),
        (replace(BLOCK, key=(("tenant", "x" * 65),)), "tenant: a value has at most 64 bytes here; lay it over the"),
        (replace(BLOCK, rule=ALL_RULES, key=()), "'*' without dimensions goes with --shadow only; name a rule, or the"),
        (replace(BLOCK, rule=ALL_RULES, key=(("user", "x"),)), "no rule has 'user' in its key"),
        (replace(BLOCK, shadow=True), "give one of --rate and --shadow"),
        (replace(BLOCK, rate=None), "give one of --rate and --shadow"),
        (replace(BLOCK, why=" "), "--why is a text of 1 to 500 printable characters, for the audit line"),
        (replace(BLOCK, who="a\nb"), "--who is a text of 1 to 500 printable characters, for the audit line"),
        (replace(BLOCK, until_ns=NOON_NS + LASTING_NS_MAX + 1), "--for is at most 31d: an override is for a while"),
        (replace(BLOCK, until_ns=NOON_NS), "--for is at most 31d"),
        (
            Override("api", "open", (), Rate(5, SECOND), False, BLOCK.until_ns, "why", "ops"),
            "rule 'open' is unlimited: it counts nothing, so only --rate 0/s can be laid over it",
        ),
        (
            Override("", "tried", (), None, True, BLOCK.until_ns, "why", "ops"),
            "rule 'tried' is a shadow already: it refuses nobody",
        ),
    ],
)
async def test_what_is_wrong_is_named_with_what_would_be_right(wrong: Override, words: str) -> None:
    """And nothing is changed."""
    desk = Desk()
    await desk.open()
    with pytest.raises(InputError, match=re.escape(words)):
        await desk.operator.lay(wrong)
    assert (desk.adopted, desk.operator.laid) == ([], ())


async def test_there_are_so_many_at_most() -> None:
    """Each is read by every edge whenever one changes."""
    desk = Desk()
    await desk.open()
    laid = tuple(replace(BLOCK, domain="api", key=(("tenant", str(number)),)) for number in range(OVERRIDES_MAX))
    desk.operator.laid = laid
    with pytest.raises(InputError, match="there are 1000 overrides, which is the most; clear some first"):
        await desk.operator.lay(BLOCK)


async def test_a_rate_is_not_laid_over_an_allowance_but_a_block_and_shadow_are() -> None:
    """What a rate leaves of ten a day nobody could say."""
    desk = Desk()
    await desk.open()
    daily = replace(BLOCK, rule="daily", key=())
    with pytest.raises(InputError, match="rule 'daily' has a quota, and a rate cannot lower an allowance: --rate 0/s"):
        await desk.operator.lay(replace(daily, rate=Rate(5, SECOND)))
    with pytest.raises(InputError, match="each rule with 'app' in its key has a quota, and a rate cannot lower"):
        await desk.operator.lay(replace(BLOCK, rule=ALL_RULES, key=(("app", "shop"),), rate=Rate(5, SECOND)))
    await desk.operator.lay(daily)
    blocked = desk.adopted[-1][1].rule("api", "daily")
    assert blocked is not None
    assert blocked.for_key(("shop",)).limit == RateLimit(0, SECOND, 0)
    await desk.operator.lay(replace(daily, rate=None, shadow=True))
    shadow = desk.adopted[-1][1].rule("api", "daily")
    assert shadow is not None
    assert shadow.for_key(("shop",)).shadow
    assert isinstance(shadow.for_key(("shop",)).limit, PeriodLimit)
