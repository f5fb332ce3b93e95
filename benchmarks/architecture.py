"""The picture of ARCHITECTURE.md: the layers of pyproject.toml, and which package imports which.

Run: python benchmarks/architecture.py [--quick]
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from pathlib import Path

import grimp
from lxml import etree

ROOT = Path(__file__).parents[1]
QUICK = "--quick" in sys.argv  # writes beside what is there, for the tests
WIDTH, ROW, HEIGHT, MARGIN, NAME = 1040, 46, 26, 20, 8
COMMON = ("mbsfmu.base", "mbsfmu.modelling")
STYLE = (
    "text{font:13px sans-serif;text-anchor:middle;dominant-baseline:central}rect{fill:#eef3f8;stroke:#46627f}"
    "path{fill:none;stroke:#46627f;stroke-opacity:.45}.lower rect{fill:#f6f1e7;stroke:#8a6d3b}"
)


def layers() -> list[list[str]]:
    """Return the packages of each layer, the uppermost first; at the bottom what knows nothing of the rest."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    named = next(each["layers"] for each in contracts if each["type"] == "layers")
    return [[package.strip() for package in row.split("|")] for row in named]


def imports(rows: list[list[str]]) -> set[tuple[str, str]]:
    """Return pairs of packages the first of which imports the second, but for those that all import."""
    packages = [package for row in rows for package in row]
    graph = grimp.build_graph("mbsfmu", "hydraulics")
    inside = {package: {package} | graph.find_descendants(package) for package in packages}
    owner = {module: package for package, modules in inside.items() for module in modules}
    return {
        (package, owner[imported])
        for package, modules in inside.items()
        for module in modules
        for imported in graph.find_modules_directly_imported_by(module)
        if owner.get(imported, package) not in (package, *COMMON)
    }


def picture(rows: list[list[str]], arrows: set[tuple[str, str]]) -> str:
    """Draw the layers one below the other, with a line from each package to what it imports."""
    places: dict[str, tuple[float, float, float]] = {}
    for index, row in enumerate(rows):
        widths = [NAME * len(package) + 24 for package in row]
        left = (WIDTH - sum(widths) - 24 * (len(row) - 1)) / 2
        for package, width in zip(row, widths, strict=True):
            places[package] = left + width / 2, MARGIN + ROW * index, width
            left += width + 24
    height = 2 * MARGIN + ROW * (len(rows) - 1) + HEIGHT
    drawing = etree.Element("svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {WIDTH} {height}")
    etree.SubElement(drawing, "style").text = STYLE
    for above, below in sorted(arrows):
        (x, y, _), (to_x, to_y, _) = places[above], places[below]
        bend = 0.5 * (to_y - y - HEIGHT)
        line = f"M{x:.0f} {y + HEIGHT}c0 {bend:.0f} {to_x - x:.0f} {bend:.0f} {to_x - x:.0f} {to_y - y - HEIGHT}"
        etree.SubElement(drawing, "path", d=line)
    for package, (x, y, width) in places.items():
        group = etree.SubElement(drawing, "g", {"class": "lower"} if package == "hydraulics" else {})
        etree.SubElement(
            group, "rect", x=f"{x - width / 2:.0f}", y=str(y), width=str(width), height=str(HEIGHT), rx="4"
        )
        etree.SubElement(group, "text", x=f"{x:.0f}", y=str(y + HEIGHT // 2)).text = package
    return etree.tostring(drawing, pretty_print=True, encoding="unicode")


def main() -> None:
    """Write the picture."""
    rows = layers()
    arrows = imports(rows)
    target = Path(tempfile.mkdtemp() if QUICK else ROOT / "docs") / "architecture.svg"
    target.write_text(picture(rows, arrows), encoding="utf-8")
    print(f"{len(rows)} layers, {len(arrows)} pairs of packages, {len(arrows) / len(rows):.1f} a layer: {target.name}")


if __name__ == "__main__":
    main()
