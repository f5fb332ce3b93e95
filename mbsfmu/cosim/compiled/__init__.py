"""Communication steps in compiled code, equal to the last bit to those in Python."""
