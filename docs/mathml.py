"""Equations as MathML: browsers draw it themselves, so that pages need no script and nothing from elsewhere."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the way of drawing, `html_math_renderer = "mathml"`."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="equation" tabindex="0">{convert(node.astext(), display="block")}</div>\n')
    raise nodes.SkipNode
