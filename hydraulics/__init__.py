"""Lumped-parameter hydraulics: components connected at nodes, and the equations of the circuit."""

from hydraulics.accumulator import Accumulator
from hydraulics.any_cylinder import Chamber
from hydraulics.check_valve import CheckValve, PilotCheckValve, ShuttleValve
from hydraulics.circuit import Balanced, Circuit, balanced
from hydraulics.component import (
    ChamberPort,
    Component,
    FilledPort,
    Flow,
    HeldPort,
    HydraulicActuator,
    OptionalDrainPort,
    OptionalPort,
    OptionalSensedPort,
    Port,
    PortKind,
    SensedPort,
    Space,
    Stage,
)
from hydraulics.component_context import ComponentContext
from hydraulics.component_inputs import FlowSource, PressureInput
from hydraulics.counterbalance_valve import CounterbalanceValve
from hydraulics.cylinder import Cylinder
from hydraulics.directional_valve import DirectionalValve
from hydraulics.displacement import catalogue_displacement, catalogue_leakage
from hydraulics.edges import Edge, closed_centre, float_centre, open_centre, tandem_centre, three_way, two_way
from hydraulics.energy import CircuitEnergies
from hydraulics.equations import CircuitEquations
from hydraulics.flow import catalogue_coefficient, orifice_flow
from hydraulics.fluid import Oil
from hydraulics.line import Line
from hydraulics.motors import InertialMotor, Motor
from hydraulics.pressure_sensors import FlowSensor, PressureSensor
from hydraulics.proportional_valve import ProportionalValve
from hydraulics.pumps import CompensatedPump, LoadSensingPump, Pump, VariablePump
from hydraulics.relief_valve import ReducingValve, ReliefValve
from hydraulics.restrictors import AnnularGap, Capillary
from hydraulics.single_acting_cylinder import SingleActingCylinder
from hydraulics.snapshot import CircuitState
from hydraulics.sources import PressureSource, Tank
from hydraulics.throttle import Throttle
from hydraulics.transmission_line import LineEnd, TransmissionLine, line_connections, wave_speed
from hydraulics.variable_orifice import VariableOrifice
from hydraulics.volumes import Hose, Volume
from mbsfmu.modelling.data import DataError
from mbsfmu.modelling.fields import Array, NonNegative, OptionalPositive, Positive
from mbsfmu.modelling.parameters import Parameter
from mbsfmu.modelling.quantity import Quantity

__all__ = [
    "Accumulator",
    "AnnularGap",
    "Array",
    "Balanced",
    "Capillary",
    "Chamber",
    "ChamberPort",
    "CheckValve",
    "Circuit",
    "CircuitEnergies",
    "CircuitEquations",
    "CircuitState",
    "CompensatedPump",
    "Component",
    "ComponentContext",
    "CounterbalanceValve",
    "Cylinder",
    "DataError",
    "DirectionalValve",
    "Edge",
    "FilledPort",
    "Flow",
    "FlowSensor",
    "FlowSource",
    "HeldPort",
    "Hose",
    "HydraulicActuator",
    "InertialMotor",
    "Line",
    "LineEnd",
    "LoadSensingPump",
    "Motor",
    "NonNegative",
    "Oil",
    "OptionalDrainPort",
    "OptionalPort",
    "OptionalPositive",
    "OptionalSensedPort",
    "Parameter",
    "PilotCheckValve",
    "Port",
    "PortKind",
    "Positive",
    "PressureInput",
    "PressureSensor",
    "PressureSource",
    "ProportionalValve",
    "Pump",
    "Quantity",
    "ReducingValve",
    "ReliefValve",
    "SensedPort",
    "ShuttleValve",
    "SingleActingCylinder",
    "Space",
    "Stage",
    "Tank",
    "Throttle",
    "TransmissionLine",
    "VariableOrifice",
    "VariablePump",
    "Volume",
    "balanced",
    "catalogue_coefficient",
    "catalogue_displacement",
    "catalogue_leakage",
    "closed_centre",
    "float_centre",
    "line_connections",
    "open_centre",
    "orifice_flow",
    "tandem_centre",
    "three_way",
    "two_way",
    "wave_speed",
]
