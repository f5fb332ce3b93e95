"""The base of the model layer's data; one implementation serves mechanisms and hydraulics."""

from hydraulics.data import Data, DataError, Name, meant, word
from hydraulics.frozen import FrozenMap, FrozenMapping

__all__ = ["Data", "DataError", "FrozenMap", "FrozenMapping", "Name", "meant", "word"]
