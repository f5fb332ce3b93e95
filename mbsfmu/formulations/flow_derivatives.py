"""Derivatives of the equations of a formulation of first order, ẏ = f(y, u, p), and of what is computed with them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import casadi as ca

from mbsfmu.systems.functions import SystemFunctions
from mbsfmu.tracing.workspace import TracedFunction


class FlowDerivatives:
    """Functions at y = (z, w, x, integrals), inputs and parameters: f, what is computed, and their derivatives.

    Derivatives are traced through the assembly, those by y and by some parameters in forward mode, products of rows
    with those by all parameters and inputs in reverse mode.

    Parameters
    ----------
    functions
        Functions of the system; they get the parts that follow.
    parts
        Names of z, w, x and the integrals.
    flow, computed
        f, shape of y, and what is computed, as expressions of these parts, inputs and parameters.

    Attributes
    ----------
    flow
        As given.
    values
        y, symbols.
    """

    def __init__(self, functions: SystemFunctions, parts: Sequence[str], flow: ca.SX, computed: ca.SX) -> None:
        self._functions, self.flow, self._computed = functions, flow, computed
        self.values = ca.vertcat(*(functions.symbol(part) for part in parts))
        self._made: dict[tuple[str, tuple[int, ...], tuple[int, ...]], TracedFunction] = {}

    def _once(self, name: str, columns: Sequence[int], rows: Sequence[int]) -> TracedFunction:
        key = name, tuple(columns), tuple(rows)
        if key not in self._made:
            read = self._computed[list(rows)]
            if name == "read":
                found = [self.flow, read]
            elif name == "along_states":
                found = [ca.jacobian(each, self.values) for each in (self.flow, read)]
            else:
                parameters = self._functions.symbol("parameters")
                along = ca.SX.eye(parameters.numel())[:, list(columns)]
                found = [ca.jtimes(each, parameters, along) for each in (self.flow, read)]
            matrices = () if name == "read" else (0, 1)
            self._made[key] = self._functions.traced(f"flow_{name}", found, matrices=matrices)
        return self._made[key]

    def read(self, rows: Sequence[int]) -> TracedFunction:
        """Return f, and rows of what is computed."""
        return self._once("read", (), rows)

    def along_states(self, rows: Sequence[int]) -> TracedFunction:
        """Return the derivatives of f and of rows of what is computed by y; shapes (size, size) and (rows, size)."""
        return self._once("along_states", (), rows)

    def along_parameters(self, columns: Sequence[int], rows: Sequence[int]) -> TracedFunction:
        """Return the same by parameters, of which `columns` are the indices; (size, columns) and (rows, columns)."""
        return self._once("along_parameters", columns, rows)

    @cached_property
    def pulled_back(self) -> TracedFunction:
        """Products of rows, the parts `by_flow` and `by_read`, with derivatives by parameters and by inputs."""
        functions = self._functions
        by_flow = functions.add_part("by_flow", self.flow.numel())[0]
        by_read = functions.add_part("by_read", self._computed.numel())[0]
        sources = [functions.symbol("parameters"), functions.symbol("inputs")]
        product = ca.dot(by_flow, self.flow) + ca.dot(by_read, self._computed)
        return functions.traced("flow_pulled_back", [ca.gradient(product, each) for each in sources])
