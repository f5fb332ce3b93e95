"""The base of the model layer's data and parts; one implementation serves mechanisms and hydraulics."""

from hydraulics.answers import in_order
from hydraulics.data import LARGEST, Data, DataError, Name, meant, word
from hydraulics.fluid import Array, NonNegative, OptionalPositive, Positive
from hydraulics.frozen import FrozenMap, FrozenMapping
from hydraulics.html import table as html_table
from hydraulics.kinds import Kinds
from hydraulics.opening import interpolated
from hydraulics.parameters import Parameter, check_numbers, parameter_fields, parameters_of
from hydraulics.part import DynamicPart, Part
from hydraulics.quantity import Quantity, belonging_to
from hydraulics.schema import DIALECT, REFERENCE, DataSchema

__all__ = [
    "DIALECT",
    "LARGEST",
    "REFERENCE",
    "Array",
    "Data",
    "DataError",
    "DataSchema",
    "DynamicPart",
    "FrozenMap",
    "FrozenMapping",
    "Kinds",
    "Name",
    "NonNegative",
    "OptionalPositive",
    "Parameter",
    "Part",
    "Positive",
    "Quantity",
    "belonging_to",
    "check_numbers",
    "html_table",
    "in_order",
    "interpolated",
    "meant",
    "parameter_fields",
    "parameters_of",
    "word",
]
