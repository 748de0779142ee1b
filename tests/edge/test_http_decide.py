"""`POST /v1/decide` over a real connection: JSON in and out, as `apportion decide --json` prints it."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apportion.core.errors import InputError
from apportion.edge.decide_request import FieldError, read_question
from tests.http_door import opened_http
from tests.in_process import rule_text, rules_text

TENANT = rules_text(rule_text("tenant-requests", "rate: 1/min, burst: 5"))
A = {"tenant": "a"}


@pytest.mark.asyncio
async def test_an_answer_is_one_object() -> None:
    """Every field of it, times in seconds."""
    async with opened_http(TENANT) as http:
        told = await http.decide({"domain": "api", "dimensions": A, "cost": 3})
    assert (told.status, told.headers["Content-Type"]) == (200, "application/json")
    decision_id = told.json["decision_id"]
    assert decision_id.endswith("-1")
    assert told.json == {
        "allowed": True,
        "decision_id": decision_id,
        "rule": "tenant-requests",
        "degraded": False,
        "rules": [
            {
                "rule": "tenant-requests",
                "key": ["a"],
                "cost": 3,
                "allowed": True,
                "charged": True,
                "remaining": 2,
                "remaining_scope": "edge",
                "retry_after": 0.0,
                "reset_after": 180.0,
                "reason": None,
                "epoch": None,
                "degraded": False,
                "shadow": False,
            }
        ],
    }


@pytest.mark.asyncio
async def test_a_refusal_is_an_answer_and_no_http_error() -> None:
    """200 with allowed false: an HTTP error means that there was no decision."""
    async with opened_http(TENANT) as http:
        await http.decide({"dimensions": A, "cost": 5})
        told = await http.decide({"dimensions": A})
    assert (told.status, told.json["allowed"]) == (200, False)
    assert (told.json["rules"][0]["reason"], told.json["rules"][0]["retry_after"]) == ("over_limit", 60.0)


@pytest.mark.asyncio
async def test_a_peek_charges_nothing() -> None:
    """Twice the same."""
    async with opened_http(TENANT) as http:
        told = [await http.decide({"dimensions": A, "cost": 5, "peek": True}) for _ in range(2)]
    assert [each.json["allowed"] for each in told] == [True, True]
    assert told[1].json["rules"][0]["charged"] is False


@pytest.mark.asyncio
async def test_several_descriptors_are_one_request() -> None:
    """A rule and key that several hit is charged once with the sum; a descriptor's own cost beats the request's."""
    descriptors = [{"dimensions": A}, {"dimensions": A, "cost": 1}, {"dimensions": {"tenant": "b"}}]
    async with opened_http(TENANT) as http:
        told = await http.decide({"descriptors": descriptors, "cost": 2})
    assert [(rule["key"], rule["cost"]) for rule in told.json["rules"]] == [(["a"], 3), (["b"], 2)]


WRONG: list[tuple[object, str, str]] = [
    (b"\xff\xfe", "", "the body is not UTF-8 text: byte 0 is 0xff"),
    (b"", "", "the body is not JSON: Expecting value at line 1 column 1"),
    (b"{", "", "the body is not JSON"),
    (b"[" * 100_000, "", "the body is nested too deeply to be a request"),
    (b'{"cost": NaN}', "", "the body has NaN, which is no number of JSON"),
    (b'{"cost": ' + b"9" * 5_000 + b"}", "", "the body has a number that is too long to be a cost"),
    (b'{"dimensions": {"tenant": "a", "tenant": "b"}}', "tenant", "tenant is there twice in one object"),
    (b'{"dimensions": {"tenant": "\\ud800"}}', "dimensions.tenant", "dimensions.tenant has half a character"),
    ([], "", "the body is a list; an object is meant, with domain, dimensions, descriptors, cost, peek"),
    (None, "", "the body is null"),
    ({}, "", 'the body has neither; write {"dimensions": {"tenant": "contoso"}}'),
    ({"dimensions": A, "descriptors": []}, "dimensions", "dimensions and descriptors are both given"),
    ({"dimension": A}, "dimension", "dimension is not a field of a request; did you mean dimensions?"),
    ({"dimensions": []}, "dimensions", "dimensions is a list; an object of texts is meant"),
    ({"dimensions": {"tenant": 7}}, "dimensions.tenant", "dimensions.tenant is a number; a text is meant"),
    ({"dimensions": {"tenant": None}}, "dimensions.tenant", "dimensions.tenant is null; a text is meant"),
    ({"dimensions": {str(n): "" for n in range(257)}}, "dimensions", "dimensions has 257 entries, the most is 256"),
    ({"dimensions": A, "cost": -1}, "cost", "cost is from 0 to 18446744073709551615, got -1 (int)"),
    ({"dimensions": A, "cost": 2**64}, "cost", "cost is from 0 to 18446744073709551615, got 18446744073709551616"),
    ({"dimensions": A, "cost": {"tokens": -1}}, "cost.tokens", "cost.tokens is from 0 to 18446744073709551615, got -1"),
    ({"dimensions": A, "cost": {"tokens": "3"}}, "cost.tokens", "cost.tokens is a text; a whole number of units is"),
    ({"dimensions": A, "cost": {"": 1}}, "cost", "cost has a measure whose name is not of 1 to 64 characters"),
    ({"dimensions": A, "cost": {str(n): 1 for n in range(17)}}, "cost", "cost names 17 measures, the most is 16"),
    (
        {"dimensions": A, "cost": {"request": 1}},
        "cost",
        "cost names the measure 'request', which no rule of the domain counts; did you mean 'requests'?",
    ),
    (
        {"dimensions": A, "cost": {"tokens": 1}},
        "cost",
        "cost names the measure 'tokens', which no rule of the domain counts; the rules count 'requests'",
    ),
    ({"dimensions": A, "cost": 1.5}, "cost", "cost is a number that is not whole; a whole number of units is meant"),
    ({"dimensions": A, "cost": True}, "cost", "cost is true or false; a whole number of units is meant"),
    ({"dimensions": A, "cost": "3"}, "cost", "cost is a text; a whole number of units is meant"),
    ({"dimensions": A, "peek": 1}, "peek", "peek is a number; true or false is meant"),
    ({"dimensions": A, "domain": 1}, "domain", "domain is a number; a text is meant"),
    ({"descriptors": {}}, "descriptors", "descriptors is an object; a list of objects with dimensions is meant"),
    ({"descriptors": []}, "descriptors", "descriptors has 0 entries; a request has 1 to 256"),
    ({"descriptors": [{"dimensions": A}] * 257}, "descriptors", "descriptors has 257 entries"),
    ({"descriptors": [A]}, "descriptors[0].tenant", "descriptors[0].tenant is not a field of a request"),
    ({"descriptors": [{"cost": 1}]}, "descriptors[0].dimensions", "descriptors[0].dimensions is missing"),
    ({"descriptors": [{"dimensions": A, "cost": -1}]}, "descriptors[0].cost", "descriptors[0].cost is from 0 to"),
]


@pytest.mark.asyncio
async def test_what_is_wrong_with_a_body_is_400_and_names_the_field(capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing is charged, nothing logged, and the process lives."""
    async with opened_http(TENANT) as http:
        for body, field, words in WRONG:
            told = await http.decide(body)
            assert told.status == 400, words
            assert told.json["field"] == field
            assert told.json["error"].startswith(words), told.json
        left = await http.decide({"dimensions": A, "cost": 0})
    assert left.json["rules"][0]["remaining"] == 5
    assert capfd.readouterr() == ("", "")


@pytest.mark.asyncio
async def test_a_cost_of_the_wire_is_a_cost_and_impossible() -> None:
    """2^64 - 1 is read; no limit ever admits it."""
    async with opened_http(TENANT) as http:
        told = await http.decide({"dimensions": A, "cost": 2**64 - 1})
    assert (told.status, told.json["rules"][0]["reason"]) == (200, "impossible")
    assert told.json["rules"][0]["retry_after"] is None


@pytest.mark.asyncio
async def test_costs_by_measure_are_charged_each_to_the_rules_that_count_it() -> None:
    """A measure that is not named costs the rule's default, 1; of several descriptors each may name its own."""
    tokens = rule_text("tenant-tokens", "rate: 1000/min, burst: 1000", more=", counts: tokens")
    async with opened_http(rules_text(rule_text("tenant-requests", "rate: 9/min, burst: 9"), tokens)) as http:
        both = await http.decide({"dimensions": A, "cost": {"requests": 2, "tokens": 350}})
        one = await http.decide({"dimensions": A, "cost": {"tokens": 50}})
        sets = [{"dimensions": A, "cost": {"tokens": 30}}, {"dimensions": {"tenant": "b"}}]
        several = await http.decide({"descriptors": sets, "cost": {"tokens": 7}})
    assert [(rule["cost"], rule["remaining"]) for rule in both.json["rules"]] == [(2, 7), (350, 650)]
    assert [(rule["cost"], rule["remaining"]) for rule in one.json["rules"]] == [(1, 6), (50, 600)]
    assert [(rule["key"], rule["cost"]) for rule in several.json["rules"]] == [
        (["a"], 1),
        (["b"], 1),
        (["a"], 30),
        (["b"], 7),
    ]


@pytest.mark.asyncio
async def test_an_unknown_domain_is_404_and_the_known_are_named() -> None:
    """A misspelt one must not switch limiting off."""
    async with opened_http(TENANT) as http:
        told = await http.decide({"domain": "apl", "dimensions": A})
    assert (told.status, told.json) == (404, {"error": "there is no domain 'apl'; the rules have 'api'"})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
FIELDS = st.sampled_from(["domain", "dimensions", "descriptors", "cost", "peek", "tenant"])


@given(JSON | st.dictionaries(FIELDS, JSON | st.fixed_dictionaries({"tenant": st.text(max_size=5)}), max_size=4))
def test_any_json_is_a_question_or_an_error_that_can_be_told(body: Any) -> None:
    """Nothing else is raised, whatever comes."""
    try:
        question = read_question(json.dumps(body).encode())
    except FieldError as error:
        json.dumps({"error": str(error), "field": error.field}).encode("ascii")
    else:
        assert question.descriptors


@settings(max_examples=300)
@given(st.binary(max_size=60))
def test_any_bytes_are_a_question_or_an_error(raw: bytes) -> None:
    """As above, for what is no JSON at all."""
    with pytest.raises(InputError):
        read_question(raw)
