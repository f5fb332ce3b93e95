"""Evaluation context of a component: its variables, the pressures at its ports, the oil."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from hydraulics.fluid import Fluid
from mbsfmu.modelling.data import DataError, closest_match
from mbsfmu.modelling.fields import Array
from mbsfmu.modelling.quantity import NamedValues


class ComponentContext:
    """Variables of a component by their short names, the pressures at its ports, and the oil.

    `now["orifice_diameter"]` is a parameter, a state or an input of the component.

    Parameters
    ----------
    owner
        Type and name of the component, for messages.
    name
        Name of the component.
    values
        The numbers of the circuit.
    ports
        The nodes by the names of the ports.
    pressure
        Returns the pressure at a node in Pa.
    oil
        The oil.
    later
        Names of its states and inputs, which are unknown during initialization.
    inflow
        Returns the flow rate into a node in m³/s; None if unknown.
    """

    def __init__(
        self,
        owner: str,
        name: str,
        values: NamedValues,
        ports: Mapping[str, str],
        pressure: Callable[[str], Array],
        oil: Fluid,
        later: Collection[str] = (),
        inflow: Callable[[str], Array] | None = None,
    ) -> None:
        self.oil = oil
        self._owner = owner
        self._name = name
        self._values = values
        self._ports = ports
        self._pressure = pressure
        self._later = later
        self._inflow = inflow

    def __getitem__(self, name: str) -> Array:
        try:
            return self._values[f"{self._name}.{name}"]
        except KeyError:
            if name in self._later:
                raise DataError(
                    f"{self._owner}: '{name}' is not known where states at the start are worked out; they follow from "
                    "parameters, and from pressures that do"
                ) from None
            known = [each.partition(".")[2] for each in self._values if each.startswith(f"{self._name}.")]
            raise DataError(f"{self._owner} has no number '{name}' here; {closest_match(name, known)}") from None

    def __contains__(self, name: object) -> bool:
        """Return whether the component has a parameter, state or input with a name; None counts as absent."""
        return f"{self._name}.{name}" in self._values

    def pressure(self, port: str) -> Array:
        """Return the pressure at a port in Pa, against vacuum."""
        return self._pressure(self._node(port))

    def inflow(self, port: str) -> Array:
        """Return the flow rate from all components into the node at a port, in m³/s at the density of the node.

        Only outputs may depend on it.
        """
        if self._inflow is None:
            raise DataError(f"{self._owner} asks for the inflow at '{port}', which outputs alone may depend on")
        return self._inflow(self._node(port))

    def _node(self, port: str) -> str:
        if port not in self._ports:
            raise DataError(f"{self._owner} has no port '{port}'; {closest_match(port, self._ports)}")
        return self._ports[port]
