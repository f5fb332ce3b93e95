"""The base of the model layer's data; one implementation serves mechanisms and hydraulics."""

from hydraulics.data import Data, DataError, Name, word

__all__ = ["Data", "DataError", "Name", "word"]
