"""Building blocks of pages: sections, paragraphs, lists, collapsible parts."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from mbsfmu.view.pages.element import HtmlElement

_STYLES = ("pages/blocks.css",)


def stack(*parts: HtmlElement) -> HtmlElement:
    """Return elements one below the other."""
    return HtmlElement.around(Markup("\n").join(part.markup for part in parts), parts)


def heading(text: str) -> HtmlElement:
    """Return the heading of a page."""
    return HtmlElement(Markup("<h1>{}</h1>").format(text))


def section(title: str, *parts: HtmlElement) -> HtmlElement:
    """Return elements under a heading."""
    inside = stack(*parts)
    return HtmlElement.around(Markup("<section><h2>{}</h2>\n{}\n</section>").format(title, inside.markup), [inside])


def paragraph(text: str, kind: str = "") -> HtmlElement:
    """Return a paragraph; `soft`, `good`, `warn` and `bad` colour it."""
    return HtmlElement(Markup('<p class="{}">{}</p>').format(kind, text) if kind else Markup("<p>{}</p>").format(text))


def as_sentence(text: str) -> str:
    """Return a note with a full stop, and a capital letter unless it begins with the name of a variable or file."""
    first = text.partition(" ")[0]
    return f"{text if '.' in first else text[:1].upper() + text[1:]}."


def answer(sentences: Iterable[tuple[str, str]]) -> HtmlElement:
    """Return the main result of a page: sentences, each with its kind as of a paragraph."""
    paragraphs = stack(*(paragraph(text, kind) for text, kind in sentences))
    return HtmlElement(
        Markup('<section class="answer" aria-label="In short">{}</section>').format(paragraphs.markup), _STYLES
    )


def notes(title: str, texts: Iterable[str]) -> HtmlElement:
    """Return a list of warnings."""
    items = Markup("").join(Markup("<li>{}</li>").format(text) for text in texts)
    return HtmlElement(Markup('<section class="notes"><h2>{}</h2><ul>{}</ul></section>').format(title, items), _STYLES)


def unfolded(summary: str, *parts: HtmlElement, opened: bool = False) -> HtmlElement:
    """Return collapsible elements, open if requested."""
    inside = stack(*parts)
    markup = Markup("<details{}><summary>{}</summary>\n{}\n</details>")
    made = markup.format(Markup(" open") if opened else "", summary, inside.markup)
    return HtmlElement(made, (*_STYLES, *inside.styles), inside.scripts)


def beside(*parts: HtmlElement) -> HtmlElement:
    """Return small elements in a row."""
    inside = stack(*parts)
    markup = Markup('<div class="row">{}</div>').format(inside.markup)
    return HtmlElement(markup, (*_STYLES, *inside.styles), inside.scripts)


def call(text: str) -> HtmlElement:
    """Return a command line without word breaks."""
    words = Markup(" ").join(Markup("<span>{}</span>").format(word) for word in text.split(" "))
    return HtmlElement(Markup('<p><code class="call">{}</code></p>').format(words), _STYLES)
