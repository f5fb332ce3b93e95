"""The equations of mechanisms as NumPy functions that run on numbers and on symbols alike."""
