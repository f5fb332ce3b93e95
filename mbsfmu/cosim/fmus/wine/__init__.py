"""FMUs for Windows alone, run on Linux under Wine: a library on this side, a program on the other, a pipe between."""
