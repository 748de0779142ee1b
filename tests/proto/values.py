"""Hypothesis strategies for every message of `apportion.core.messages`, within the wire's maxima."""

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from apportion.core import allocator_messages as a
from apportion.core import messages as m
from apportion.core.key import encode_key
from apportion.core.messages import Ids, Units
from apportion.core.space_saving import Counted

u53 = st.integers(0, 2**53 - 1)
u63 = st.integers(0, 2**63 - 1)
u64 = st.integers(0, 2**64 - 1)
ids = st.integers(0, 2**24 - 1)
generations = st.integers(1, 2**53 - 1)
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
names_not_empty = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
keys = st.lists(st.text(max_size=70), max_size=3).map(encode_key)
quotas = st.builds(m.Quota, words, words, keys)
quota_names = st.lists(st.builds(m.QuotaName, ids, quotas), max_size=3, unique_by=lambda name: name.id).map(tuple)
periods = st.text(st.characters(exclude_categories=["Cs"]), max_size=16)
chunks = st.builds(m.Lent, ids, u53, u53, st.integers(1, 10**10), periods)
ticks = st.builds(m.Tick, u53, st.integers(0, 10**9))
rules = st.builds(m.Rules, u53, st.lists(st.tuples(words, words), max_size=3).map(tuple))
refusals = st.builds(m.Refused, words, st.booleans())
marks = st.lists(
    st.builds(m.EpochMark, u53, st.sampled_from(m.EpochKind), u53), max_size=8, unique_by=lambda mark: mark.epoch
).map(lambda found: tuple(sorted(found, key=lambda mark: mark.epoch)))
registers = st.builds(m.Register, u53, u53, marks, u53, u63, u63, words)


def column_of_ids(values: list[int]) -> Ids:
    """A column as our own code has it."""
    return np.array(values, np.uint32)


def column_of_units(values: list[int]) -> Units:
    """A column as our own code has it."""
    return np.array(values, np.uint64)


@st.composite
def rows(draw: st.DrawFn) -> tuple[Ids, Units]:
    """Two columns, each quota once."""
    quota = draw(st.lists(ids, max_size=5, unique=True))
    units = draw(st.lists(u53, min_size=len(quota), max_size=len(quota)))
    return column_of_ids(quota), column_of_units(units)


@st.composite
def reports(draw: st.DrawFn) -> m.Report:
    """A report; what settled late makes a quota occur twice among the spent."""
    spent = draw(st.lists(st.tuples(ids, u53, u53), max_size=5))
    demand, given = draw(rows()), draw(rows())
    return m.Report(
        draw(u63),
        draw(u53),
        draw(quota_names),
        *demand,
        column_of_ids([quota for quota, _, _ in spent]),
        column_of_units([epoch for _, epoch, _ in spent]),
        column_of_units([units for _, _, units in spent]),
        draw(u63),
        draw(u63),
        column_of_units([draw(u53) for _ in spent] if draw(st.booleans()) else []),
        column_of_units([draw(u53) for _ in demand[0]] if draw(st.booleans()) else []),
        tuple(Counted(quota, units, units // 2) for quota, units in draw(st.lists(st.tuples(quotas, u53), max_size=3))),
        draw(st.lists(st.tuples(words, words, u63), max_size=3).map(tuple)),
        *given,
        tuple(draw(periods) for _ in given[0]),
    )


@st.composite
def plans(draw: st.DrawFn) -> a.Plan:
    """A plan for some holders."""
    holders = draw(st.lists(u64, max_size=4, unique=True))
    columns = tuple(
        a.Column(holder, *found, found[0][draw(st.booleans()) :]) for holder in holders for found in [draw(rows())]
    )
    return a.Plan(draw(generations), draw(u53), draw(u53), draw(quota_names), columns, *draw(rows()), *draw(rows()))


members = st.builds(m.Member, ids, u64)
groups = st.builds(m.Group, st.integers(1, 2**20), st.lists(members, min_size=1, max_size=3).map(tuple), st.booleans())
acquires = st.builds(
    m.Acquire,
    u63,
    quota_names,
    st.lists(groups, max_size=4).map(tuple),
    st.lists(st.tuples(ids, u53), max_size=3).map(tuple),
)
# The two largest numbers of these columns mean "none" and "as large as can be said".
told = st.none() | st.integers(0, 2**64 - 2)
member_answers = st.builds(m.MemberAnswer, st.sampled_from(m.Outcome), u53, u64, told, told, st.booleans(), told)
answers = st.builds(
    m.AcquireAnswer,
    u63,
    ticks,
    st.lists(
        st.builds(m.GroupAnswer, st.integers(0, 2**20), st.lists(member_answers, min_size=1, max_size=3).map(tuple)),
        max_size=4,
    ).map(tuple),
    st.lists(st.builds(m.Lent, ids, u53, u53) | chunks, max_size=3).map(tuple),
)
holders = st.lists(
    st.builds(a.Holder, u64, words, words, st.booleans()), max_size=4, unique_by=lambda holder: holder.incarnation
).map(tuple)

FROM_EDGE = {
    "hello": st.builds(m.Hello, names_not_empty, words, u64, u53, u53),
    "acquire": acquires,
    "report": reports(),
    "return": st.builds(
        lambda epoch, found, number, some: m.Return(
            epoch, found[0], found[1], number, found[1] // 2 if some else found[1][:0]
        ),
        u53,
        rows(),
        st.integers(1, 2**63 - 1),
        st.booleans(),
    ),
    "leave": st.just(m.Leave()),
    "rules ack": st.builds(m.RulesAck, u53),
}
TO_EDGE = {
    "welcome": st.builds(m.Welcome, rules, ticks, u64),
    "tick": ticks,
    "rules": rules,
    "slices": st.builds(
        lambda epoch, generation, version, names, found: m.Slices(
            epoch, generation, version, names, found[0], found[1], found[0][1:]
        ),
        u53,
        u53,
        u53,
        quota_names,
        rows(),
    ),
    "acquire answer": answers,
    "report ack": st.builds(m.ReportAck, u63),
    "refused": refusals,
}
FROM_ALLOCATOR = {
    "hello": st.builds(a.AllocatorHello, names_not_empty, u64),
    "lead": st.builds(a.Lead, generations),
    "claim": st.builds(a.Claim, generations, u53),
    "plan": plans(),
}
TO_ALLOCATOR = {
    "rules": rules,
    "governance": st.builds(a.Governance, ticks, registers, u64, holders, u53),
    "register answer": st.builds(a.RegisterAnswer, st.booleans(), registers),
    "demand": st.builds(
        lambda holder, epoch, names, found: a.Demand(holder, epoch, names, found[0], found[1], epoch % 2 == 1),
        u64,
        u53,
        quota_names,
        rows(),
    ),
    "remembered": st.builds(
        lambda edge, incarnation, reported, gone, left, names, found: a.Remembered(
            edge, incarnation, reported, gone, left, names, *found
        ),
        names_not_empty,
        u64,
        u53,
        st.none() | u53,
        st.booleans(),
        quota_names,
        rows(),
    ),
    "refused": refusals,
}


def plain(value: Any) -> Any:
    """`value` as nested tuples that compare by content and type, arrays included."""
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.tolist())
    if isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    if is_dataclass(value):
        return (type(value).__name__, *(plain(getattr(value, field.name)) for field in fields(value)))
    return (type(value).__name__, value)
