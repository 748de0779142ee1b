"""Rules that change on disk while real processes run: on every edge within two seconds, proved by what edges say."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.system.live import (
    EDGES,
    HEAD,
    Change,
    acknowledged,
    in_place,
    renamed_over,
    rule,
    rules,
    system,
    system_of_links,
)


@pytest.mark.asyncio
async def test_a_limit_goes_up_down_to_zero_and_to_unlimited_on_every_edge_within_two_seconds(tmp_path: Path) -> None:
    """Each edge says which version it decides by, and then answers by the new number (issue 4; C19f back again)."""
    async with system(tmp_path) as whole:
        changes: list[tuple[str, int | None, Change]] = [
            ("{rate: 400/s}", 400, in_place),
            ("{rate: 40/s}", 40, renamed_over),
            ("{rate: 0/s}", 0, in_place),
            ("{rate: 50/s}", 50, renamed_over),
            ("{unlimited: true}", None, in_place),
            ("{rate: 30/s}", 30, in_place),
        ]
        epochs = []
        for limit, units, how in changes:
            epochs.append(await whole.change(rules(limit), how))
            for edge in EDGES:
                answer = await whole.decide(edge, "search")
                told = [verdict.limit.units for verdict in answer.verdicts if verdict.rule == "search"]
                assert told == ([] if units is None else [units])
                assert (await whole.admitted(edge, "search")) is (units != 0)
        assert max(epochs) <= 2


@pytest.mark.asyncio
async def test_usage_is_kept_when_a_limit_changes(tmp_path: Path) -> None:
    """C33, bucket form: 8 of 10 used; at 20 there are 12 more, at 5 none, and no reload gives anything back."""
    async with system(tmp_path) as whole:
        used = [(await whole.decide(EDGES[at % 2], "pay")).allowed for at in range(8)]
        await whole.change(rules(pay="{rate: 20/min}"))
        (up,) = (await whole.decide(EDGES[0], "pay")).verdicts
        await whole.change(rules(pay="{rate: 5/min}"))
        down = await whole.decide(EDGES[1], "pay")
        await whole.change(HEAD + rule("other", "{rate: 7/s}", "lease") + rules(pay="{rate: 10/min}")[len(HEAD) :])
        after = [(await whole.decide(EDGES[at % 2], "pay")).allowed for at in range(3)]
        assert (used, up.allowed, down.allowed) == ([True] * 8, True, False)
        # 9 were used; what has drained meanwhile is at most what the time since gives.
        assert 11 <= up.remaining <= 14
        assert after.count(True) <= 4


@pytest.mark.asyncio
async def test_a_bad_file_stops_nobody_and_keeps_its_last_good_text(tmp_path: Path) -> None:
    """C29, C30, C31 at reload: the bad file is told of, the other file's change is in force, nothing exits."""
    async with system(tmp_path) as whole:
        other = whole.folder / "zz.yaml"
        good = HEAD + rule("mail", "{rate: 60/s}", "lease")
        for bad in (HEAD + "  - {name: mail, limit: }\n", HEAD + rule("twin", "{rate: 15/s}", "lease") * 2, "", "{{{"):
            other.write_text(good)
            await whole.until(lambda said: not said.rules_rejected and any(r.rule == "mail" for r in said.rules))
            other.write_text(bad)
            said = await whole.until(lambda said: list(said.rejected_files) == ["zz.yaml"])
            assert "zz.yaml" in said.rules_rejected
        before = (await whole.explain()).rules_version
        whole.file.write_text(rules("{rate: 300/s}"))
        said = await whole.until(lambda said: acknowledged(said, before + 1))
        assert list(said.rejected_files) == ["zz.yaml"]
        (verdict,) = (await whole.decide(EDGES[0], "search")).verdicts
        assert verdict.limit.units == 300
        (mail,) = (await whole.decide(EDGES[1], "mail")).verdicts
        assert mail.limit.units == 60
        other.unlink()
        await whole.until(lambda said: acknowledged(said, before + 2) and not said.rules_rejected)
        assert not (await whole.decide(EDGES[1], "mail")).verdicts
        assert [child.name for child in whole.children if child.ended] == []


@pytest.mark.asyncio
async def test_a_swapped_link_and_sighup_are_seen_too(tmp_path: Path) -> None:
    """Kubernetes mounts a ConfigMap as links into a folder that it replaces by renaming one link."""
    for name, limit in (("..one", "{rate: 100/s}"), ("..two", "{rate: 200/s}")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rules.yaml").write_text(rules(limit))
    (tmp_path / "..data").symlink_to("..one")
    (tmp_path / "rules.yaml").symlink_to(Path("..data") / "rules.yaml")

    def swapped(path: Path, _: str) -> None:
        (path.parent / "..tmp").symlink_to("..two")
        (path.parent / "..tmp").rename(path.parent / "..data")

    async with system_of_links(tmp_path) as whole:
        assert await whole.change("", swapped) <= 2
        (verdict,) = (await whole.decide(EDGES[0], "search")).verdicts
        assert verdict.limit.units == 200
        os.kill(whole.region.pid, signal.SIGHUP)
        await whole.logged("rules_files_in_force")
