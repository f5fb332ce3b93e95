"""What axe-core finds in a page that keeps people from reading it."""

from __future__ import annotations

from pathlib import Path

from chromium import Chromium

AXE = Path(__file__).parent / "libraries" / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")
_RUN = "axe.run(document, {resultTypes: ['violations'], iframes: false}).then((found) => found.violations)"


def findings(browser: Chromium) -> list[str]:
    """Return the serious findings of the page that is open, each with what it is about."""
    browser.evaluate(f"{AXE.read_text(encoding='utf-8')}; undefined")
    return [
        f"{each['id']}: {each['help']}: {each['nodes'][0]['html'][:200]} {each['nodes'][0].get('failureSummary', '')}"
        for each in browser.evaluate(_RUN)
        if each["impact"] in SERIOUS
    ]
