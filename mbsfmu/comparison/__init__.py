"""Cost of coupling: coupled runs of a model compared with its monolithic run."""

from mbsfmu.comparison.comparison import Comparison, ComparisonInterrupted, ComparisonOptions
from mbsfmu.comparison.comparison_runs import compare
from mbsfmu.comparison.run import Run, StabilityLimit
from mbsfmu.cosim.coupling.algorithms import CHOICES, USUAL

__all__ = [
    "CHOICES",
    "USUAL",
    "Comparison",
    "ComparisonInterrupted",
    "ComparisonOptions",
    "Run",
    "StabilityLimit",
    "compare",
]
