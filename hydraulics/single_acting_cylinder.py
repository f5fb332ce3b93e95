"""The single-acting cylinder, including plungers."""

from __future__ import annotations

from typing import Annotated, Literal

from hydraulics.any_cylinder import AnyCylinder, Chamber
from hydraulics.component import ChamberPort
from hydraulics.component_context import ComponentContext
from hydraulics.fluid import ATMOSPHERIC_PRESSURE
from hydraulics.piston import ring
from mbsfmu.modelling.data import DataError
from mbsfmu.modelling.fields import Array, NonNegative, OptionalPositive, Positive
from mbsfmu.modelling.parameters import Parameter


class SingleActingCylinder(AnyCylinder):
    """Cylinder extended by oil and retracted by a load or a spring; the rod side is open to the atmosphere.

    A plunger has the diameter of its rod. The force is (p − p_a) A − F₀ − k x at the extension x.

    Attributes
    ----------
    piston
        Node of the chamber.
    piston_diameter
        In m.
    spring_stiffness
        k in N/m; None for a constant spring force.
    spring_preload
        F₀ in N, fully retracted.
    """

    type: Literal["single-acting-cylinder"] = "single-acting-cylinder"
    piston: ChamberPort
    piston_diameter: Annotated[Positive, Parameter("m", "diameter of the piston", usual=(1e-3, 3.0))]
    spring_stiffness: Annotated[OptionalPositive, Parameter("N/m", "stiffness of the spring")] = None
    spring_preload: Annotated[NonNegative, Parameter("N", "force of the spring, fully retracted")] = 0.0

    def chambers(self, now: ComponentContext) -> tuple[Chamber, ...]:
        """Return the piston-side chamber."""
        return (Chamber("piston", ring(now["piston_diameter"], 0.0), 1),)

    def pushed(self, now: ComponentContext) -> Array:
        """Return the force of pressure, atmosphere and spring in N, positive where it extends the cylinder."""
        return super().pushed(now) - self._pulled(now)

    def energy(self, now: ComponentContext) -> Array:
        """Return the energy in J of end stops and spring, and of the displaced atmosphere."""
        extended = self._extended(now)
        return super().energy(now) + (self._constant(now) + 0.5 * self._stiffness(now) * extended) * extended

    def energy_rate(self, now: ComponentContext) -> Array:
        """Return the derivative of `energy` in W."""
        return super().energy_rate(now) + self._pulled(now) * now["velocity"]

    def balanced_pressure(self, port: str, now: ComponentContext) -> Array:  # noqa: ARG002
        """Return the pressure in Pa that balances the initial load without friction."""
        if "spring_stiffness" in now:
            raise DataError(
                f"{self.type} '{self.name}' has a spring, whose force at the start its length decides: let the "
                f"pressure at '{self.piston}' start at a number"
            )
        return (now["initial_load"] + self._constant(now)) / self.chambers(now)[0].area

    def balance_advice(self, port: str, now: ComponentContext) -> str:  # noqa: ARG002
        """Return advice: oil cannot pull."""
        return (
            f"{self.type} '{self.name}', which it balances, is pulled with {-now['initial_load']:.6g} N, "
            "and oil only pushes"
        )

    def _pulled(self, now: ComponentContext) -> Array:
        """Return the retracting force of atmosphere and spring in N."""
        return self._constant(now) + self._stiffness(now) * self._extended(now)

    def _constant(self, now: ComponentContext) -> Array:
        return ATMOSPHERIC_PRESSURE * self.chambers(now)[0].area + now["spring_preload"]

    def _stiffness(self, now: ComponentContext) -> Array | float:
        if "spring_stiffness" not in now:
            return 0.0
        return now["spring_stiffness"]
