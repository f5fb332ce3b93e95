"""Options of a comparison: its runs and their evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, TypedDict

from mbsfmu.base.options import POSITIVE, ChoiceOption, ListOption, Number, Options, Switch
from mbsfmu.cosim.coupling.algorithms import CHOICES, USUAL
from mbsfmu.exporting.fmu_export import BACKENDS, Backend
from mbsfmu.simulation.run_options import RunOptions

ACCURACY = 1e-2
"""Default accuracy of outputs."""


class ComparisonKeywords(TypedDict, total=False):
    """The options of a comparison as keywords, for editors and type checkers; `ComparisonOptions` explains them."""

    steps: Sequence[float] | None
    algorithms: Sequence[str] | None
    formulation: str | None
    newton_tolerance: float | None
    backend: Backend | None
    stop: float | None
    accuracy: float | None
    stability: bool | None


class ComparisonOptions(Options):
    """Options of a comparison.

    All runs have the same largest internal step, the smallest communication step, so that the difference from the
    monolithic run is the coupling error alone; that from the reference run is the error of coupling and step together.

    Raises
    ------
    InputError
        When a word is unknown, a number is out of range, or a list is empty or has a value twice.
    """

    subject: ClassVar[str] = "a comparison"

    steps: Annotated[
        tuple[float, ...],
        ListOption("Communication steps in s", each=Number("One of them.", unit="s", bounds=POSITIVE, called="step")),
    ] = (2e-3, 1e-3, 5e-4)
    algorithms: Annotated[
        tuple[str, ...],
        ListOption(
            "Algorithms with their extrapolation",
            each=ChoiceOption("One of them.", among=lambda: CHOICES, called="algorithm"),
        ),
    ] = USUAL
    formulation: Annotated[str | None, RunOptions.known()["formulation"]] = None
    newton_tolerance: Annotated[float | None, RunOptions.known()["newton_tolerance"]] = None
    backend: Annotated[str, ChoiceOption("Backend of the FMUs", among=lambda: BACKENDS)] = BACKENDS[0]
    stop: Annotated[
        float | None, Number("Stop time in s; the model's by default", unit="s", bounds=POSITIVE, called="stop time")
    ] = None
    accuracy: Annotated[
        float,
        Number(
            "Error wanted of coupling and step together, relative to the range of each output; the report names the "
            "least expensive setting that reaches it",
            bounds=POSITIVE,
        ),
    ] = ACCURACY
    stability: Annotated[bool, Switch("Whether to search the largest stable step of each algorithm")] = False
