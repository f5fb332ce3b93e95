"""Cost of coupling: coupled runs of a model compared with its monolithic run."""

from mbsfmu.comparison.comparison import Comparison, ComparisonInterrupted
from mbsfmu.comparison.comparison_options import ComparisonOptions
from mbsfmu.comparison.model_comparison import compare
from mbsfmu.comparison.run import Run
from mbsfmu.comparison.stability import StabilityLimit
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
