"""Integration rules, one file each; a file in this package is registered by its rule's name."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from mbsfmu.rules.implicit_rules import Trapezoidal
from mbsfmu.rules.rule import Array, FirstOrderValues, PositionValues, Rule, Step, find_rule, rule_names, rule_texts

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = [
    "Array",
    "FirstOrderValues",
    "PositionValues",
    "Rule",
    "Step",
    "Trapezoidal",
    "find_rule",
    "rule_names",
    "rule_texts",
]
