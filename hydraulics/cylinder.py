"""The double-acting cylinder."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import model_validator

from hydraulics.any_cylinder import AnyCylinder, Chamber
from hydraulics.component import ChamberPort, Flow
from hydraulics.component_context import ComponentContext
from hydraulics.piston import ring
from mbsfmu.modelling.fields import Array, OptionalPositive, Positive
from mbsfmu.modelling.parameters import Parameter


class Cylinder(AnyCylinder):
    """A double-acting cylinder with friction and soft end stops [Jaiswal2021, eqs. 28, 29, 42 and 43].

    Attributes
    ----------
    piston, rod
        Nodes of the piston-side and the rod-side chamber.
    piston_diameter, rod_diameter
        In m.
    through_rod_diameter
        Diameter in m of a rod on the piston's side as well; None without one.
    leakage
        Laminar, over the piston, in m³/(s Pa); None without any.
    """

    type: Literal["cylinder"] = "cylinder"
    piston: ChamberPort
    rod: ChamberPort
    piston_diameter: Annotated[Positive, Parameter("m", "diameter of the piston", usual=(1e-3, 3.0))]
    rod_diameter: Annotated[Positive, Parameter("m", "diameter of the rod", usual=(1e-4, 3.0))]
    through_rod_diameter: Annotated[
        OptionalPositive, Parameter("m", "diameter of the rod on the piston's side", usual=(1e-4, 3.0))
    ] = None
    leakage: Annotated[
        OptionalPositive, Parameter("m3/(s.Pa)", "laminar leakage over the piston", tunable=True, usual=(1e-18, 1e-8))
    ] = None

    @model_validator(mode="after")
    def _has_a_piston_between_two_chambers(self) -> Self:
        for name, whose in (("rod_diameter", "the rod's"), ("through_rod_diameter", "the through rod's")):
            diameter = getattr(self, name)
            if diameter is not None and self.piston_diameter <= diameter:
                raise ValueError(
                    f"piston_diameter is {self.piston_diameter}; it must be greater than {whose}, {diameter}"
                )
        if self.piston == self.rod:
            raise ValueError(f"piston and rod are both at node '{self.piston}'; they need a node each")
        return self

    def orderings(self) -> tuple[tuple[str, str], ...]:
        """Return that each piston diameter must exceed its rod diameter."""
        through = () if self.through_rod_diameter is None else (("through_rod_diameter", "piston_diameter"),)
        return (("rod_diameter", "piston_diameter"), *through)

    def chambers(self, now: ComponentContext) -> tuple[Chamber, ...]:
        """Return the piston-side and the rod-side chamber."""
        piston, through = now["piston_diameter"], "through_rod_diameter" in now
        return (
            Chamber("piston", ring(piston, now["through_rod_diameter"] if through else 0.0), 1),
            Chamber("rod", ring(piston, now["rod_diameter"]), -1),
        )

    def flows(self, now: ComponentContext) -> Iterable[Flow]:
        """Return the leakage flow over the piston."""
        if "leakage" in now:
            yield Flow(now["leakage"] * (now.pressure("piston") - now.pressure("rod")), "piston", "rod")

    def balanced_pressure(self, port: str, now: ComponentContext) -> Array:
        """Return the pressure in Pa that balances the initial load without friction [Jaiswal2021, sect. 5]."""
        piston, rod = (each.area for each in self.chambers(now))
        load = now["initial_load"]
        if port == "piston":
            return (load + now.pressure("rod") * rod) / piston
        return (now.pressure("piston") * piston - load) / rod

    def balance_advice(self, port: str, now: ComponentContext) -> str:
        """Return advice: the load, and the pressure of the other chamber that could carry it."""
        areas = {each.port: each.area for each in self.chambers(now)}
        other = "rod" if port == "piston" else "piston"
        load = abs(now["initial_load"])
        return (
            f"{self.type} '{self.name}', which it balances, is {'pulled' if port == 'piston' else 'pushed'} with "
            f"{load:.6g} N; let the pressure at '{self.ports()[other]}' start above {load / areas[other]:.6g} Pa, or "
            f"balance that one and give '{self.ports()[port]}' a number"
        )
