"""C38 (a), (c), (d): when a quota of a period resets, in every answer the same instant, and never 0 on a refusal."""

from apportion.edge.http_fields import decision_fields
from tests.cases.quota_world import QuotaWorld
from tests.in_process import rule_text, rules_text

FIVE = rules_text(rule_text("five", "quota: 5/min, anchor: calendar"))


def used_up(t: float) -> QuotaWorld:
    """A minute whose five are used when it is nearly `t`."""
    world = QuotaWorld(FIVE, t=t - 2)
    assert [world.call().allowed for _ in range(5)] == [True] * 5
    world.until(t)
    return world


def retry_after(t: float) -> str | None:
    """What the sixth call is told at `t`, in the whole seconds of HTTP."""
    world = used_up(t)
    refused = world.call()
    assert not refused.allowed and refused.retry_after is not None and refused.retry_after > 0
    fields = decision_fields(refused, "id")
    assert f";a=0;w={fields['Retry-After']};r=0;t={fields['Retry-After']};" in fields["RateLimit"]
    assert fields["RateLimit-Policy"] == '"five";q=5;w=60'
    return fields["Retry-After"]


def test_the_sixth_call_waits_for_the_minutes_end_in_whole_seconds() -> None:
    """(a) 1.8 s are 2, and 1 ms is 1: a question of 59.994 is at the region at 59.999."""
    assert retry_after(58.2) == "2"
    assert retry_after(59.994) == "1"


def test_the_sixth_call_passes_with_the_next_minute() -> None:
    """(d) Not a moment later."""
    assert used_up(60.0).call().allowed


def test_who_was_refused_passes_when_the_minute_ends_and_nobody_asks_the_region_before() -> None:
    """The refusal is remembered until the reset: no further crossing but those that make up for clocks that differ."""
    world = used_up(30.0)
    assert not world.call().allowed
    crossings = world.crossings
    for t in range(31, 60):
        world.until(t)
        assert not world.call().allowed
    assert world.crossings == crossings
    world.until(60.0)
    assert world.call().allowed


def test_twenty_answers_in_five_seconds_name_one_reset() -> None:
    """(c) Admitted and refused, whatever the way back took, with clocks of edges that show any other time."""
    world = QuotaWorld(rules_text(rule_text("hourly", "quota: 15/hour, anchor: calendar")), edges=1, t=1800)
    told = []
    for number in range(20):
        world.until(1800 + number * 0.25)
        decision = world.call()
        assert decision.allowed is (number < 15)
        told.append(world.reset_t(decision))
    assert max(told) - min(told) <= 1e-6
    assert 3600 <= told[0] <= 3600.1


def test_each_tenant_is_told_the_midnight_of_its_own_zone() -> None:
    """One rule: 22:00 UTC is midnight in Berlin, 04:00 in New York; who is not listed has the file's."""
    tenants = "contoso: {plan: any, time_zone: Europe/Berlin}, fabrikam: {plan: any, time_zone: America/New_York}"
    plans = f"plans: {{any: {{unused: {{rate: 1/s}}}}}}\nunlisted_tenants: any\ntenants: {{{tenants}}}\nrules:"
    daily = rule_text("daily", "quota: 5/day, anchor: calendar, time_zone: from_tenant")
    rules = rules_text(daily).replace("rules:", plans)
    world = QuotaWorld(rules, t=3600)
    told = {tenant: world.reset_t(world.call(tenant=tenant)) for tenant in ("contoso", "fabrikam", "other")}
    hours = {tenant: round(reset / 3600, 3) for tenant, reset in told.items()}
    assert hours == {"contoso": 22.0, "fabrikam": 4.0, "other": 24.0}
