"""Reading `plans`, `tenants` and `unlisted_tenants` of a domain, over all its files, and tables of tenants. Pure."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from apportion.core.document import MappingNode, Node, Problem, Scalar, kind_of
from apportion.core.key import VALUE_LITERAL_MAX
from apportion.core.quantities import shown
from apportion.core.rule import Place
from apportion.core.rule_fields import Section
from apportion.core.rule_limit import read_limit
from apportion.core.rules_vocabulary import nearest
from apportion.core.tenancy import REFUSE, Tenancy, Tenant
from apportion.core.time_zones import zone_problem

PLANS_MAX = 64
"""Of one domain; every rule that takes its limit from a plan is compiled for each."""

PLAN_LIMITS_MAX = 64
"""Limits of one plan."""

NAME_MAX = 64
"""Characters of a plan's name, or of a limit's in it."""

TABLE = ".csv"
"""How the name of a table of tenants ends."""

TABLE_COLUMNS = ("tenant", "plan", "time_zone", "month_starts_on")
TENANT_FIELDS = TABLE_COLUMNS[1:]

HOW_TO_CHOOSE_UNLISTED = (
    "missing, and there is no default because choosing it is the design: what may a tenant do that is not listed? name "
    f"the plan that it is on, or write `{REFUSE}`"
)


_NAMES_TABLE = re.compile(r"""\bfrom\s*:\s*["']?([^\s"'{},#/\\]+\.csv)\b""")


def tables_named(text: str) -> list[str]:
    """File names of the tables that a rules file may read tenants from: all that it looks like naming one, in order.

    Whoever reads the disk asks this before anything is parsed; what is found in vain is read in vain.
    """
    return [name for name in dict.fromkeys(_NAMES_TABLE.findall(text)) if not name.startswith(".")]


@dataclass(slots=True)
class TenancyDraft:
    """What the files of a domain have said so far. `plans`: limits by name, as they stand in the file, and where."""

    plans: dict[str, dict[str, Node]] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    tenants: dict[str, tuple[Tenant, Place]] = field(default_factory=dict)
    unlisted: tuple[str, Place] | None = None
    wrong: bool = False

    def read(self, top: Section, tables: Mapping[str, str]) -> None:
        """Take what one file says; `tables` are texts of tables of tenants by file name."""
        before = len(top.problems)
        self._read_plans(top)
        self._read_tenants(top, tables)
        self._read_unlisted(top)
        self.wrong = self.wrong or len(top.problems) > before

    def finish(self, problems: list[Problem]) -> Tenancy | None:
        """The tenancy of the domain; None where there are no plans, or anything was reported."""
        before = len(problems)
        names = tuple(sorted(self.plans))
        for tenant, place in self.tenants.values():
            if tenant.plan not in self.plans:
                problems.append(Problem(place, f"found the plan {shown(tenant.plan)}, {nearest(tenant.plan, names)}"))
        if self.unlisted is not None and not self.plans and not self.wrong:
            problems.append(Problem(self.unlisted[1], "belongs to `plans`, and there are none in a file of the domain"))
        elif self.unlisted is not None and self.unlisted[0] not in (REFUSE, *names):
            plan, place = self.unlisted
            problems.append(Problem(place, f"found {shown(plan)}, {nearest(plan, (*names, REFUSE))}"))
        if self.unlisted is None and self.plans:
            place = min(self.places.values(), key=lambda place: (place.file, place.line))
            where = Place(place.file, place.line, "unlisted_tenants")
            problems.append(Problem(where, HOW_TO_CHOOSE_UNLISTED))
        if self.wrong or len(problems) > before or not self.plans or self.unlisted is None:
            return None
        return Tenancy({name: tenant for name, (tenant, _) in self.tenants.items()}, self.unlisted[0])

    def _read_plans(self, top: Section) -> None:
        node = top.mapping("plans", "a mapping from names of plans to their limits")
        if node is None:
            return
        for key, value in node.entries:
            path = f"plans.{key.text}"
            place = Place(top.file, key.line, path)
            if wrong := _name_problem(key.text, "a plan"):
                top.refuse_item("plans", key, wrong)
            elif key.text == REFUSE:
                top.refuse_item("plans", key, f"`{REFUSE}` is what `unlisted_tenants` says of tenants without a plan")
            elif key.text in self.plans:
                top.refuse_item("plans", key, f"the plan {shown(key.text)} is at {self.places[key.text]} already")
            elif not isinstance(value, MappingNode) or not value.entries:
                found = "nothing" if isinstance(value, MappingNode) else kind_of(value)
                top.refuse_item(
                    path, key, f"found {found}, limits by name are meant, such as {{requests: {{rate: 10/s}}}}"
                )
                self.plans[key.text], self.places[key.text] = {}, place
            elif len(self.plans) >= PLANS_MAX:
                top.refuse_item("plans", key, f"is one plan more than {PLANS_MAX}, the most of a domain")
            else:
                self.places[key.text] = place
                self.plans[key.text] = _read_limits(top, path, value)

    def _read_tenants(self, top: Section, tables: Mapping[str, str]) -> None:
        node = top.mapping("tenants", "a mapping from tenants to plans, or {from: tenants.csv},")
        if node is None:
            return
        source = next((value for key, value in node.entries if key.text == "from"), None)
        if isinstance(source, Scalar) and source.text.endswith(TABLE):
            if len(node.entries) > 1:
                top.refuse(
                    "tenants", f"has tenants beside `from: {source.text}`; write them into the table, or leave it out"
                )
            elif "/" in source.text or "\\" in source.text or source.text.startswith("."):
                top.refuse("tenants", f"found `from: {source.text}`; name a file in the folder of this one")
            elif source.text not in tables:
                top.refuse("tenants", f"found `from: {source.text}`, and there is no such file beside this one")
            else:
                self._read_table(source.text, tables[source.text], top.problems)
            return
        for key, value in node.entries:
            tenant = _read_tenant(top, key, value)
            if tenant is not None:
                self._add(key.text, tenant, Place(top.file, key.line, f"tenants.{key.text}"), top.problems)

    def _read_table(self, name: str, text: str, problems: list[Problem]) -> None:
        """Tenants of a CSV file with a header."""
        reader = csv.reader(text.removeprefix("\ufeff").splitlines(keepends=True), strict=True)
        columns: list[str] = []
        try:
            for row in reader:
                place = Place(name, reader.line_num)
                if not columns:
                    columns = row
                    if wrong := _header_problem(columns):
                        problems.append(Problem(place, wrong))
                        return
                elif len(row) != len(columns):
                    problems.append(
                        Problem(place, f"has {len(row)} values, the header names {len(columns)}: {','.join(columns)}")
                    )
                else:
                    values = dict(zip(columns, row, strict=True))
                    tenant = _table_tenant(values, place, problems)
                    if tenant is not None:
                        self._add(values["tenant"], tenant, place, problems)
        except csv.Error as error:
            problems.append(Problem(Place(name, reader.line_num), f"not valid CSV: {error}"))
        if not columns:
            problems.append(Problem(Place(name, 1), f"is empty; the first line is {','.join(TABLE_COLUMNS[:2])}"))

    def _add(self, name: str, tenant: Tenant, place: Place, problems: list[Problem]) -> None:
        if wrong := tenant_problem(name):
            problems.append(Problem(place, wrong))
        elif name in self.tenants:
            problems.append(Problem(place, f"the tenant {shown(name)} is at {self.tenants[name][1]} already"))
        else:
            self.tenants[name] = (tenant, place)

    def _read_unlisted(self, top: Section) -> None:
        plan = top.text("unlisted_tenants", f"a plan, or `{REFUSE}`,")
        if plan is None:
            return
        if self.unlisted is not None and self.unlisted[0] != plan:
            former, place = self.unlisted
            top.refuse(
                "unlisted_tenants",
                f"found {shown(plan)}, but {place} says {former} for the same domain; write it once, or alike",
            )
            return
        self.unlisted = (plan, top.place("unlisted_tenants"))


def tenant_problem(name: str) -> str | None:
    """Why a text is no tenant's name; None when it is one. A longer one would not stand literally in a quota's key."""
    length = len(name.encode("utf-8", "surrogatepass"))
    if not name or length > VALUE_LITERAL_MAX:
        return f"a tenant's name has 1 to {VALUE_LITERAL_MAX} bytes, found {length}"
    return None if name.isprintable() else f"found {shown(name)}; a tenant's name has only printable characters"


def _name_problem(name: str, what: str) -> str | None:
    if 0 < len(name) <= NAME_MAX and name.isprintable():
        return None
    return f"found {shown(name)}; the name of {what} has 1 to {NAME_MAX} printable characters"


def _read_limits(top: Section, path: str, node: MappingNode) -> dict[str, Node]:
    """The limits of a plan as they stand; each that is wrong by itself is reported here, and left out."""
    limits: dict[str, Node] = {}
    for key, value in node.entries[:PLAN_LIMITS_MAX]:
        if wrong := _name_problem(key.text, "a limit"):
            top.refuse_item(path, key, wrong)
            continue
        one = Section(top.file, path, MappingNode(((key, value),), key.line), (key.text,), (), top.problems)
        if read_limit(one, None, key.text) is not None:
            limits[key.text] = value
    if len(node.entries) > PLAN_LIMITS_MAX:
        top.refuse_item(path, node, f"has {len(node.entries)} limits, the most is {PLAN_LIMITS_MAX}")
    return limits


def _read_tenant(top: Section, key: Scalar, value: Node) -> Tenant | None:
    path = f"tenants.{key.text}"
    if isinstance(value, Scalar) and not value.nothing:
        return Tenant(value.text)
    if not isinstance(value, MappingNode):
        top.refuse_item(
            path, key, f"found {kind_of(value)}, a plan is meant, or {{plan: gold, time_zone: Europe/Berlin}}"
        )
        return None
    before = len(top.problems)
    fields = Section(top.file, path, value, TENANT_FIELDS, (), top.problems)
    plan = fields.text("plan", "a plan")
    if not fields.has("plan"):
        fields.refuse("plan", "missing; name the plan that the tenant is on")
    zone = fields.text("time_zone", "a time zone such as Europe/Berlin")
    if zone is not None and (wrong := zone_problem(zone)):
        fields.refuse("time_zone", wrong)
    month_starts_on = fields.count("month_starts_on", 1, 31)
    return Tenant(plan, zone, month_starts_on) if plan and len(top.problems) == before else None


def _header_problem(columns: list[str]) -> str | None:
    for column in columns:
        if column not in TABLE_COLUMNS:
            return f"found the column {shown(column)}, {nearest(column, TABLE_COLUMNS)}"
    for column in TABLE_COLUMNS[:2]:
        if columns.count(column) != 1:
            return f"the first line names the columns; `{column}` is there {columns.count(column)} times, once is right"
    return "a column is named twice" if len(set(columns)) < len(columns) else None


def _table_tenant(values: Mapping[str, str], place: Place, problems: list[Problem]) -> Tenant | None:
    """A row of a table; an empty value of a column that a tenant need not have says nothing."""
    zone, day = values.get("time_zone") or None, values.get("month_starts_on") or None
    wrong = None
    if not values["plan"]:
        wrong = "has no plan; name the one that the tenant is on"
    elif zone is not None and (found := zone_problem(zone)):
        wrong = f"time_zone: {found}"
    elif day is not None and not (day.isascii() and day.isdecimal() and len(day) <= 2 and 1 <= int(day) <= 31):
        wrong = f"month_starts_on: found {shown(day)}, a number from 1 to 31 is meant"
    if wrong:
        problems.append(Problem(place, wrong))
        return None
    return Tenant(values["plan"], zone, int(day) if day else None)
