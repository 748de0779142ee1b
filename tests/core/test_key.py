"""Keys are injective: no value, whatever is in it, gets another's bytes (case C25)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from apportion.core.key import DIGEST_BYTES, VALUE_LITERAL_MAX, encode_key, encode_quota, key_text

# Short texts over few characters meet each other often; long ones are digested; surrogates come from careless callers.
VALUES = st.one_of(
    st.text(alphabet="a\x00\x01\x02_:|/{}*\n", max_size=4),
    st.text(st.characters(), max_size=5),
    st.integers(60, 70).map(lambda length: "a" * length),
    st.text(alphabet="ab", min_size=65, max_size=67),
)
KEYS = st.lists(VALUES, max_size=4).map(tuple)


@given(KEYS, KEYS)
def test_different_values_never_give_the_same_bytes(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    """Neither by a separator within a value nor by moving a border between two."""
    assert (encode_key(one) == encode_key(other)) == (one == other)


@given(st.tuples(VALUES, VALUES, KEYS), st.tuples(VALUES, VALUES, KEYS))
def test_quotas_of_different_rules_never_meet(
    one: tuple[str, str, tuple[str, ...]], other: tuple[str, str, tuple[str, ...]]
) -> None:
    """Domain, rule and key are kept apart like values."""
    names = [encode_quota(domain, rule, encode_key(values)) for domain, rule, values in (one, other)]
    assert (names[0] == names[1]) == (one == other)


@given(KEYS)
def test_a_key_is_bounded_and_can_be_shown(values: tuple[str, ...]) -> None:
    """However long a value is, and whatever bytes are in it."""
    key = encode_key(values)
    assert len(key) <= len(values) * (2 + VALUE_LITERAL_MAX)
    assert key_text(key).isprintable()


def test_a_long_value_is_a_digest_that_no_short_value_can_pose_as() -> None:
    """The tag in front says which it is, whatever the bytes of the digest are."""
    assert encode_key(["a" * 65])[:2] == bytes([1, DIGEST_BYTES])
    assert encode_key(["a" * DIGEST_BYTES])[:2] == bytes([0, DIGEST_BYTES])
    assert len(encode_key(["a" * 65])) == 2 + DIGEST_BYTES
    assert encode_key(["contoso", ""]) == b"\x00\x07contoso\x00\x00"
    assert key_text(encode_key(["contoso", "", "a,b"])) == "contoso, '', 'a,b'"
