"""The JSON of `POST /v1/decide`: bytes to a question, with errors that name the field. Pure.

Either `{"domain": "api", "dimensions": {"tenant": "contoso"}, "cost": 3, "peek": false}`, of which only `dimensions`
must be there, or in its place several: `"descriptors": [{"dimensions": {"tenant": "contoso"}, "cost": 3}, ...]`.
A cost is a number of requests, or units by measure: `{"requests": 1, "tokens": 350}`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from apportion.core.errors import InputError
from apportion.core.plans import shown_value
from apportion.core.request import COST_MAX, MEASURE_NAME_MAX, MEASURES_MAX, Cost, Descriptor
from apportion.edge.asking import DESCRIPTORS_MAX, DIMENSIONS_MAX

_FIELDS = ("domain", "dimensions", "descriptors", "cost", "peek")
_DESCRIPTOR_FIELDS = ("dimensions", "cost")
_KINDS: dict[type, str] = {
    bool: "true or false",
    float: "a number that is not whole",
    str: "a text",
    list: "a list",
    dict: "an object",
}


class FieldError(InputError):
    """A field of the request is wrong; `field` is its path, "" the whole body."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(f"{field or 'the body'} {text}")
        self.field = field


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. `peek` charges nothing."""

    domain: str
    descriptors: tuple[Descriptor, ...]
    peek: bool


def read_question(raw: bytes) -> Question:
    """The question in a request's body. FieldError names what is wrong with it."""
    body = _object(_parse(raw), "", _FIELDS)
    given = [name for name in ("dimensions", "descriptors") if name in body]
    if len(given) != 1:
        raise FieldError(
            "" if not given else "dimensions",
            'has neither; write {"dimensions": {"tenant": "contoso"}}, or several in "descriptors"'
            if not given
            else "and descriptors are both given; put all dimensions into descriptors, or have no descriptors",
        )
    cost = _cost(body, "")
    return Question(
        _text(body.get("domain", ""), "domain"),
        (Descriptor(_dimensions(body["dimensions"], ""), cost),)
        if "dimensions" in body
        else _descriptors(body["descriptors"], cost),
        _flag(body.get("peek", False), "peek"),
    )


def _parse(raw: bytes) -> object:
    try:
        return json.loads(raw.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise FieldError("", f"is not UTF-8 text: byte {error.start} is {raw[error.start]:#04x}") from error
    except json.JSONDecodeError as error:
        raise FieldError("", f"is not JSON: {error.msg} at line {error.lineno} column {error.colno}") from error
    except RecursionError as error:
        raise FieldError("", "is nested too deeply to be a request") from error
    except ValueError as error:  # a number of more digits than Python reads
        raise FieldError("", "has a number that is too long to be a cost") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object. One of two values of a name would be dropped, and the limit that it was meant for be off, unseen."""
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for number, name in enumerate(names) if name in names[:number])
        raise FieldError(twice[:100], "is there twice in one object")
    return found


def _no_number(text: str) -> object:
    raise FieldError("", f"has {text}, which is no number of JSON")


def _object(value: object, path: str, known: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise FieldError(path, f"is {_kind(value)}; an object is meant, with {', '.join(known)}")
    for name in value:
        if name not in known:
            near = get_close_matches(name[:100], known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise FieldError(_join(path, name[:100]), f"is not a field of a request; {hint}")
    return value


def _descriptors(value: object, cost: Cost) -> tuple[Descriptor, ...]:
    """The descriptors; `cost` is what one costs that does not say so itself."""
    if not isinstance(value, list):
        raise FieldError("descriptors", f"is {_kind(value)}; a list of objects with dimensions is meant")
    if not 1 <= len(value) <= DESCRIPTORS_MAX:
        raise FieldError("descriptors", f"has {len(value)} entries; a request has 1 to {DESCRIPTORS_MAX}")
    found = []
    for index, entry in enumerate(value):
        path = f"descriptors[{index}]"
        given = _object(entry, path, _DESCRIPTOR_FIELDS)
        if "dimensions" not in given:
            raise FieldError(f"{path}.dimensions", "is missing")
        own = _cost(given, path)
        found.append(Descriptor(_dimensions(given["dimensions"], path), cost if own is None else own))
    return tuple(found)


def _dimensions(value: object, path: str) -> dict[str, str]:
    path = _join(path, "dimensions")
    if not isinstance(value, dict):
        raise FieldError(path, f'is {_kind(value)}; an object of texts is meant, such as {{"tenant": "contoso"}}')
    if len(value) > DIMENSIONS_MAX:
        raise FieldError(path, f"has {len(value)} entries, the most is {DIMENSIONS_MAX}")
    return {_text(name, path): _text(each, f"{path}.{name[:100]}") for name, each in value.items()}


def _cost(holder: Mapping[str, Any], path: str) -> Cost:
    value = holder.get("cost")
    if value is None:
        return None
    path = _join(path, "cost")
    if not isinstance(value, dict):
        return _units(value, path, "a whole number of units is meant, an object of them by measure, or none at all")
    if len(value) > MEASURES_MAX:
        raise FieldError(path, f"names {len(value)} measures, the most is {MEASURES_MAX}")
    for measure in value:
        if not 0 < len(_text(measure, path)) <= MEASURE_NAME_MAX:
            raise FieldError(path, f"has a measure whose name is not of 1 to {MEASURE_NAME_MAX} characters")
    return {name: _units(units, f"{path}.{name}", "a whole number of units is meant") for name, units in value.items()}


def _units(value: object, path: str, meant: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise FieldError(path, f"is {_kind(value)}; {meant}")
    if not 0 <= value <= COST_MAX:
        raise FieldError(path, f"is from 0 to {COST_MAX}, got {shown_value(value)}")
    return value


def _text(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise FieldError(path, f"is {_kind(value)}; a text is meant")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise FieldError(path, "has half a character: a surrogate without its other half")
    return value


def _flag(value: object, path: str) -> bool:
    if not isinstance(value, bool):
        raise FieldError(path, f"is {_kind(value)}; true or false is meant")
    return value


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _kind(value: object) -> str:
    """What a wrong value is, in JSON's words."""
    if value is None:
        return "null"
    return _KINDS.get(type(value), "a number")
