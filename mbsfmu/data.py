"""The base of the model layer's data; one implementation serves mechanisms and hydraulics."""

from hydraulics.data import Data, DataError

__all__ = ["Data", "DataError"]
