"""Tables and data as HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from mbsfmu.modelling.descriptions import field_texts, summary

MOST_ROWS = 40
"""Largest number of displayed rows; the number of others is stated."""
_LEFT = ' style="text-align: left"'


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "") -> str:
    """Return an HTML table; numbers have six digits, None is a dash, text is escaped.

    Parameters
    ----------
    columns
        Headings.
    rows
        Cells of each row; those after `MOST_ROWS` are counted only.
    title
        Stands above it.
    """
    every = list(rows)
    head = "".join(f"<th{_LEFT}>{escape(each)}</th>" for each in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in every[:MOST_ROWS])
    if len(every) > MOST_ROWS:
        body += f'<tr><td{_LEFT} colspan="{len(columns)}">… and {len(every) - MOST_ROWS} more</td></tr>'
    meaning = f"<div><strong>{escape(title)}</strong></div>" if title else ""
    return f"<div>{meaning}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"<td>{value:.6g}</td>"
    return f"<td{_LEFT}>{'–' if value is None else escape(str(value))}</td>"


def data_page(data: BaseModel) -> str:
    """Return validated data as HTML: fields with units, and collapsible parts."""
    name = getattr(data, "name", "")
    title = f"{type(data).__name__} {name}".strip()
    fields = {name: getattr(data, name) for name in type(data).model_fields if name not in ("name", "type")}
    parts = {name: value for name, value in fields.items() if _holds_parts(value)}
    plain = [_row(data, name, value) for name, value in fields.items() if name not in parts]
    shown = table(("field", "value", "unit", "meaning"), plain) if plain else ""
    return (
        f"<div><div><strong>{escape(title)}</strong> {escape(summary(type(data)))}</div>{shown}"
        f"{''.join(_opened(name, value) for name, value in parts.items())}</div>"
    )


def _holds_parts(value: Any) -> bool:
    """Return whether a field is a non-empty collection of data."""
    each = list(value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple) else ())
    return bool(each) and all(isinstance(part, BaseModel) for part in each)


def _row(data: BaseModel, name: str, value: Any) -> tuple[object, ...]:
    unit, meaning = unit_and_meaning(type(data), name, type(data).model_fields[name])
    return name, value if isinstance(value, float) or value is None else _short(value), unit, meaning


def unit_and_meaning(kind: type[BaseModel], name: str, field: FieldInfo) -> tuple[str, str]:
    """Return the unit of a field, empty where none is declared, and its description."""
    unit, text = "", field_texts(kind).get(name, "")
    for each in field.metadata:
        unit, text = getattr(each, "unit", unit), getattr(each, "description", text)
    return unit, text


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {each}" for key, each in value.items())
    if isinstance(value, tuple):
        return ", ".join(map(_short, value)) if value and not isinstance(value[0], float) else str(value)
    return str(value)


def _opened(name: str, value: Any) -> str:
    """Return collapsible parts: each system by itself, others as a table."""
    named = dict(value) if isinstance(value, Mapping) else None
    if named and any(
        _holds_parts(getattr(each, field)) for each in named.values() for field in type(each).model_fields
    ):
        inner = "".join(_details(key, data_page(each)) for key, each in named.items())
    else:
        inner = table(("name", "kind", "data"), _parts(value))
    return _details(f"{name} ({len(value)})", inner)


def _parts(value: Any) -> Iterator[tuple[str, str, str]]:
    for name, part in value.items() if isinstance(value, Mapping) else ((None, part) for part in value):
        given = ", ".join(f"{key}={each!r}" for key, each in part.__repr_args__() if key != "name")
        yield name or str(getattr(part, "name", "")), type(part).__name__, given


def _details(title: str, inner: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{inner}</details>"
