"""The limiter in a process, as a user meets it: rules from files, one call, clear errors, threads."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

import apportion
from apportion import InputError, Limiter, RulesError
from tests.in_process import SECOND, ManualClock, limiter_of, rule_text, rules_text

TEN = rule_text("ten", "rate: 10/s, burst: 5")
A = {"tenant": "a"}


def test_a_limiter_decides_by_its_rules_file(tmp_path: Path) -> None:
    """Five pass, the sixth is told to wait 0.1 s, and passes then."""
    clock = ManualClock()
    limiter = limiter_of(tmp_path, clock, TEN)
    assert [limiter.decide(A).allowed for _ in range(6)] == [True] * 5 + [False]
    refused = limiter.decide(A)
    assert (refused.rule, refused.retry_after, refused.remaining, refused.remaining_scope) == ("ten", 0.1, 0, "edge")
    assert (refused.reason, refused.degraded) == ("over_limit", False)
    clock.now_ns += SECOND // 10
    assert limiter.decide(A)


@pytest.mark.asyncio
async def test_the_asynchronous_call_decides_the_same(tmp_path: Path) -> None:
    """Cost, domain and peek are passed on."""
    limiter = limiter_of(tmp_path, ManualClock(), TEN)
    assert (await limiter.decide_async(A, 2)).remaining == 3
    assert (await limiter.decide_async(A, 3, domain="api", peek=True)).remaining == 3
    assert not (await limiter.decide_async(A, cost=4)).allowed


def test_the_default_clock_is_real(tmp_path: Path) -> None:
    """A limiter without a clock of the test's decides too."""
    path = tmp_path / "rules.yaml"
    path.write_text(rules_text(TEN))
    assert Limiter.from_rules(str(path)).decide(A).remaining == 4


def test_several_files_and_folders_make_one_set_of_rules(tmp_path: Path) -> None:
    """Two domains: each is named, and has its own buckets."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "one.yaml").write_text(rules_text(TEN, domain="one"))
    (tmp_path / "two.yaml").write_text(rules_text(TEN, domain="two"))
    limiter = Limiter.from_rules([tmp_path / "folder", str(tmp_path / "two.yaml")], ManualClock())
    assert limiter.decide(A, 5, domain="one").remaining == 0
    assert limiter.decide(A, 5, domain="two").remaining == 0


@pytest.mark.parametrize("domain, words", [(None, "name one"), ("three", "'three'"), (3, "3 (int)"), (["one"], "list")])
def test_a_domain_that_is_not_there_is_named_with_those_that_are(
    tmp_path: Path, domain: str | None, words: str
) -> None:
    """Left out where there are two, misspelt, or no text."""
    for name in ("one", "two"):
        (tmp_path / f"{name}.yaml").write_text(rules_text(TEN, domain=name))
    limiter = Limiter.from_rules(tmp_path, ManualClock())
    with pytest.raises(InputError, match="'one', 'two'") as caught:
        limiter.decide(A, domain=domain)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "cost, words",
    [
        (-1, "-1 (int) is below 0"),
        (1.0, "not 1.0 (float)"),
        ("1", "not '1' (str)"),
        (True, "not True (bool)"),
        (2**64, "is above 18446744073709551615"),
        ([], "not [] (list)"),
    ],
)
def test_a_cost_that_is_no_number_of_units_is_an_error(tmp_path: Path, cost: int, words: str) -> None:
    """It says what was found; nothing is charged."""
    limiter = limiter_of(tmp_path, ManualClock(), TEN)
    with pytest.raises(InputError) as caught:
        limiter.decide(A, cost)
    assert words in str(caught.value)
    assert limiter.decide(A, 5).allowed


def test_a_number_too_long_to_print_is_an_error_all_the_same(tmp_path: Path) -> None:
    """Python refuses to write more than 4300 digits; the error does without them."""
    limiter = limiter_of(tmp_path, ManualClock(), TEN)
    for request, cost in ((A, 10**5000), (A, -(10**5000)), ({"tenant": 10**5000}, 1), ({10**5000: "a"}, 1)):
        with pytest.raises(InputError, match="cannot be shown"):
            limiter.decide(request, cost)  # type: ignore[arg-type]


def test_the_largest_cost_is_an_answer_not_an_error(tmp_path: Path) -> None:
    """2^64-1 can never pass here."""
    refused = limiter_of(tmp_path, ManualClock(), TEN).decide(A, 2**64 - 1)
    assert (refused.reason, refused.retry_after) == ("impossible", None)


@pytest.mark.parametrize("request_", [None, 5, "tenant", [("tenant", "a")], {"tenant": 5}, {"tenant": None}, {5: "a"}])
def test_a_request_that_is_not_text_to_text_is_an_error(tmp_path: Path, request_: dict[str, str]) -> None:
    """And the limiter goes on: an error leaves nothing taken."""
    limiter = limiter_of(tmp_path, ManualClock(), TEN)
    for _ in range(3):
        with pytest.raises(InputError):
            limiter.decide(request_)
    assert limiter.decide(A).remaining == 4


def test_values_of_two_mebibytes_are_ordinary_values(tmp_path: Path) -> None:
    """Two that differ in the last character are two keys; surrogates that no encoding likes are text too."""
    limiter = limiter_of(tmp_path, ManualClock(), TEN)
    long = "x" * (2 * 1024 * 1024 - 1)
    assert limiter.decide({"tenant": long + "a"}, 5).allowed
    assert limiter.decide({"tenant": long + "b"}, 5).allowed
    assert not limiter.decide({"tenant": long + "a"}).allowed
    assert limiter.decide({"tenant": "\ud800"}, 5).allowed
    assert not limiter.decide({"tenant": "\ud800"}).allowed


def test_a_rules_file_that_is_not_there_is_named() -> None:
    """InputError, not an OSError."""
    with pytest.raises(InputError, match=r"nowhere\.yaml"):
        Limiter.from_rules("nowhere.yaml")


def test_a_broken_rules_file_is_reported_whole(tmp_path: Path) -> None:
    """Every problem, each with its line."""
    path = tmp_path / "rules.yaml"
    path.write_text(rules_text(TEN.replace("rate", "rat"), TEN.replace("key", "keey")))
    with pytest.raises(RulesError) as caught:
        Limiter.from_rules(path)
    assert "rules.yaml:4" in str(caught.value)
    assert "rules.yaml:5" in str(caught.value)


def test_threads_admit_no_more_than_one_thread_would(tmp_path: Path) -> None:
    """Four threads, 2 rules, 4,000 offers at one instant: exactly the burst of the narrower rule, from both rules."""
    limiter = limiter_of(
        tmp_path,
        ManualClock(),
        rule_text("wide", "rate: 1000/hour, burst: 900"),
        rule_text("narrow", "rate: 700/hour, burst: 700", match="tenant api"),
    )
    admitted: list[int] = []
    start = threading.Barrier(4)

    def work() -> None:
        start.wait()
        admitted.append(sum(limiter.decide({"tenant": "a", "api": "x"}).allowed for _ in range(1000)))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert sum(admitted) == 700
    assert limiter.decide({"tenant": "a"}, 200).allowed
    assert not limiter.decide({"tenant": "a"}).allowed


def test_a_thread_in_the_middle_of_a_decision_keeps_others_out(tmp_path: Path) -> None:
    """The second decision begins when the first is done, and is not lost."""
    inside, leave, order = threading.Event(), threading.Event(), []

    def clock() -> int:
        order.append(threading.current_thread().name)
        if len(order) == 1:
            inside.set()
            leave.wait(10)
        return SECOND

    limiter = Limiter.from_rules(_file(tmp_path), clock)
    first = threading.Thread(target=limiter.decide, args=(A,), name="first")
    second = threading.Thread(target=limiter.decide, args=(A,), name="second")
    first.start()
    assert inside.wait(10)
    second.start()
    second.join(0.05)
    assert order == ["first"]
    leave.set()
    first.join(10)
    second.join(10)
    assert order == ["first", "second"]
    assert limiter.decide(A).remaining == 2


def test_an_error_of_the_clock_leaves_the_limiter_usable(tmp_path: Path) -> None:
    """Whatever is raised in a decision, the next one is not shut out."""
    instants: list[int | None] = [None, SECOND]

    def clock() -> int:
        now_ns = instants.pop(0)
        if now_ns is None:
            raise KeyboardInterrupt
        return now_ns

    limiter = Limiter.from_rules(_file(tmp_path), clock)
    with pytest.raises(KeyboardInterrupt):
        limiter.decide(A)
    assert limiter.decide(A).remaining == 4


def test_the_package_gives_its_public_names() -> None:
    """No more than the documented ones."""
    assert set(apportion.__all__) == {
        "ApportionError",
        "Decision",
        "InputError",
        "Limiter",
        "ProtocolError",
        "RulesError",
        "StoreError",
        "UnavailableError",
        "__version__",
    }
    assert all(
        issubclass(getattr(apportion, name), apportion.ApportionError) for name in apportion.__all__ if "Error" in name
    )


def test_python_without_assertions_is_refused() -> None:
    """They are what stands between a fault and an exceeded limit."""
    run = subprocess.run([sys.executable, "-O", "-c", "import apportion"], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "Apportion does not run under python -O" in run.stderr


def _file(folder: Path) -> Path:
    path = folder / "rules.yaml"
    path.write_text(rules_text(TEN))
    return path
