"""What stands on a page: its text without scripts, its tables, and the data that scripts read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lxml import html

from mbsfmu.view.report import Circumstances, write_report


class Page:
    """A report, read back."""

    def __init__(self, path: Path) -> None:
        self.source = path.read_text(encoding="utf-8")
        self.tree = html.document_fromstring(self.source)
        scripts = self.tree.xpath("//script")
        self.data = [json.loads(each.text) for each in scripts if each.get("type") == "application/json"]
        self.scripts = [each.text for each in scripts if each.get("type") != "application/json"]
        for each in self.tree.xpath("//script | //style"):
            each.drop_tree()

    @property
    def text(self) -> str:
        return plain(self.tree.body)

    @property
    def answer(self) -> list[str]:
        return [plain(each) for each in self.tree.xpath("//section[@class='answer']/p")]

    def rows(self, *heads: str) -> list[list[str]]:
        """The rows of the one table that begins with some columns."""
        (found,) = (
            each
            for each in self.tree.xpath("//table")
            if [plain(head) for head in each.xpath("./thead//th")][: len(heads)] == list(heads)
        )
        return [[plain(cell) for cell in row.xpath("./td")] for row in found.xpath("./tbody/tr")]

    @property
    def plots(self) -> dict[str, list[dict[str, Any]]]:
        """The panels of each plot by its title."""
        return {each["title"]: each["panels"] for each in self.data if isinstance(each, dict) and "panels" in each}


def plain(element: Any) -> str:
    return " ".join(element.text_content().split())


def report_of(result: Any, folder: Path, *circumstances: Circumstances) -> Page:
    return Page(write_report(result, folder / "report.html", *circumstances))
