"""Base of models: parts, parameters, quantities and documents, shared by mechanisms and hydraulics."""

from mbsfmu.modelling.answers import in_order
from mbsfmu.modelling.conditions import Condition, Remark, remarks
from mbsfmu.modelling.data import LARGEST, Data, DataError, Name, closest_match, word
from mbsfmu.modelling.data_schema import DIALECT, REFERENCE, DataSchema
from mbsfmu.modelling.fields import Array, Measured, NonNegative, OptionalPositive, Positive
from mbsfmu.modelling.frozen import FrozenMap, FrozenMapping
from mbsfmu.modelling.html import table as html_table
from mbsfmu.modelling.interpolation import interpolated, tabulated
from mbsfmu.modelling.kinds import Kinds
from mbsfmu.modelling.parameters import Parameter, check_numbers, is_table, parameter_fields, parameters_of
from mbsfmu.modelling.part import DynamicPart, Part
from mbsfmu.modelling.quantity import Quantity, belonging_to
from mbsfmu.modelling.structure import Role, structure_of

__all__ = [
    "DIALECT",
    "LARGEST",
    "REFERENCE",
    "Array",
    "Condition",
    "Data",
    "DataError",
    "DataSchema",
    "DynamicPart",
    "FrozenMap",
    "FrozenMapping",
    "Kinds",
    "Measured",
    "Name",
    "NonNegative",
    "OptionalPositive",
    "Parameter",
    "Part",
    "Positive",
    "Quantity",
    "Remark",
    "Role",
    "belonging_to",
    "check_numbers",
    "closest_match",
    "html_table",
    "in_order",
    "interpolated",
    "is_table",
    "parameter_fields",
    "parameters_of",
    "remarks",
    "structure_of",
    "tabulated",
    "word",
]
