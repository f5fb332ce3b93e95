"""The base of the model layer's data; one implementation serves mechanisms and hydraulics."""

from hydraulics.data import LARGEST, Data, DataError, Name, meant, word
from hydraulics.frozen import FrozenMap, FrozenMapping

__all__ = ["LARGEST", "Data", "DataError", "FrozenMap", "FrozenMapping", "Name", "meant", "word"]
