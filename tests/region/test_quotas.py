"""Quotas known to a region: found, forgotten, and never two under one id while anybody could mean the first."""

from __future__ import annotations

import pytest

from apportion.core.messages import Quota
from apportion.core.rules_file import parse_rules
from apportion.region import quotas
from apportion.region.quotas import IDLE_EPOCHS, REST_EPOCHS, QuotaTable
from apportion.region.versions import Lookup
from tests.region.by_hand import RULES


def quota(key: int) -> Quota:
    """A quota of the rule `lease` under a key of its own."""
    return Quota("api", "lease", bytes((0, 1, key)))


def test_what_nobody_names_is_forgotten_and_its_id_rests() -> None:
    """After 30 epochs; its id means nothing for 1,000 more, and then another quota."""
    table = QuotaTable(Lookup(parse_rules(RULES.texts)))
    first = table.find(quota(1), epoch=100)
    assert first is not None
    assert table.forget_idle(100 + IDLE_EPOCHS) == [first.id]
    second = table.find(quota(2), epoch=100 + IDLE_EPOCHS + REST_EPOCHS)
    assert second is not None
    assert second.id != first.id
    third = table.find(quota(3), epoch=101 + IDLE_EPOCHS + REST_EPOCHS)
    assert third is not None
    assert third.id == first.id


def test_a_full_table_takes_nothing_in_and_lets_nothing_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quota in use is in a plan: forgotten and found again it would be lent a second time."""
    monkeypatch.setattr(quotas, "QUOTAS_MAX", 2)
    table = QuotaTable(Lookup(parse_rules(RULES.texts)))
    first, second = table.find(quota(1), 100), table.find(quota(2), 100)
    assert table.find(quota(3), 100) is None
    assert table.forget_idle(101) == []
    assert (table.find(quota(1), 101), table.find(quota(2), 101)) == (first, second)
