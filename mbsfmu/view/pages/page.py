"""Skeleton of all pages: one self-contained file, light and dark, for paper, screen and phone."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from mbsfmu.base.errors import InputError
from mbsfmu.base.files import complete_file
from mbsfmu.view.pages.element import HtmlElement
from mbsfmu.view.pages.page_files import libraries_of, text_of


def page(title: str, content: HtmlElement) -> str:
    """Return a complete page.

    What it has inside it may use; a rule in its head forbids it to load anything else.

    Parameters
    ----------
    title
        What a browser calls it.
    content
        What it shows; headings begin with `h1`.
    """
    names = (*content.styles, *content.scripts)
    return (
        environment()
        .from_string(text_of("pages/page.html"))
        .render(
            title=title,
            content=content.markup,
            computes=content.computes,
            connects=content.connects,
            styles=[Markup(text_of(name)) for name in ("pages/page.css", *content.styles)],
            scripts=[Markup(text_of(name)) for name in content.scripts],
            libraries=libraries_of(names),
        )
    )


def write_page(title: str, content: HtmlElement, path: str | os.PathLike[str]) -> Path:
    """Write a complete page to an HTML file, atomically.

    Raises
    ------
    InputError
        When the file is not called `.html` or `.htm`.
    """
    if not os.fspath(path).lower().endswith((".html", ".htm")):
        raise InputError(f"{os.fspath(path)} is refused as a page: its name must end in .html or .htm")
    text = page(title, content)
    with complete_file(path) as partial:
        partial.write_text(text, encoding="utf-8")
    return Path(path)


@cache
def environment() -> Environment:
    """Return the template environment, which escapes text."""
    return Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)


def filled(template: str, **values: Any) -> Markup:
    """Return a template of this package by its path, filled."""
    return Markup(environment().from_string(text_of(template)).render(**values))


def framed(title: str, content: HtmlElement, height: int) -> str:
    """Return markup that embeds a page in another one, such as a notebook's, in isolation.

    Parameters
    ----------
    title, content
        As for `page`.
    height
        Of the frame in pixels; the page in it scrolls.
    """
    return Markup(
        '<iframe title="{}" srcdoc="{}" style="width: 100%; height: {}px; border: 0" loading="lazy"></iframe>'
    ).format(title, page(title, content), height)
