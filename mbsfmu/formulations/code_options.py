"""Options of formulations with kernel loops: form of code, order of assembly."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from mbsfmu.base.errors import InputError
from mbsfmu.base.options import ChoiceOption
from mbsfmu.formulations.formulation import FormulationOptions
from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.systems.system import LARGE, Code, can_be_in_loops


class Assembly(StrEnum):
    """Orders of assembly."""

    BALANCED = "balanced"
    SEQUENTIAL = "sequential"


class CodeOptions(FormulationOptions):
    """Options of formulations that have kernel loops."""

    code: Annotated[
        Code | None,
        ChoiceOption(
            "Form of the generated code: straight (unrolled), or kernel loops, which large mechanisms trace and "
            f"compile sooner; by default loops above {LARGE} coordinates, and with dca and hdca where they need fewer "
            "operations, or unrolled code of implicit steps would be long",
            among=lambda: tuple(each.value for each in Code),
            lacking="which has unrolled code only",
        ),
    ] = None

    assembly: Annotated[
        Assembly | None,
        ChoiceOption(
            "Order of assembly of a tree in kernel loops: sequential, with the fewest operations (default), or "
            "balanced, in pairs level by level, as mechanisms with loops always are",
            among=lambda: tuple(each.value for each in Assembly),
            lacking="which has unrolled code only",
        ),
    ] = None

    @property
    def sequential(self) -> bool:
        """Whether joints are eliminated sequentially."""
        return self.assembly != Assembly.BALANCED

    @property
    def form(self) -> Code | None:
        """The chosen form of code."""
        return None if self.code is None else Code(self.code)

    def _why_unrolled(self, functions: SystemFunctions) -> str:
        """Return why code is unrolled, and the alternative."""
        if self.form is Code.STRAIGHT:
            return "as was chosen; choose code 'loops'"
        if not can_be_in_loops(functions.system):
            return "as it cannot be kernel loops; leave that out"
        count = len(functions.system.start_system.coordinates)
        coordinates = "1 coordinate" if count == 1 else f"{count} coordinates"
        return f"the quicker one of {coordinates} where none is chosen; choose code 'loops' (--code loops)"

    def check_use(self, functions: SystemFunctions) -> None:
        """Refuse options without effect on the functions of a system.

        Raises
        ------
        InputError
            When it is for kernel loops, or for trees, and they are not such.
        """
        name = functions.system.name
        if self.assembly is None:
            return
        if not functions.in_loops:
            message = f"the assembly can be chosen for kernel loops only; the code of {name} is unrolled"
            raise InputError(f"{message}, {self._why_unrolled(functions)}")
        start = functions.system.start_system
        closing = functions.rows if start is functions.system else start.constraints
        if self.assembly == Assembly.SEQUENTIAL and len(closing):
            raise InputError(f"the assembly can be sequential for trees alone; {name} has loops")
