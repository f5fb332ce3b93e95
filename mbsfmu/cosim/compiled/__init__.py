"""Communication steps of the master in compiled code, equal to the last bit to those that Python makes."""
