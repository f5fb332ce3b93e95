"""`python -m mbsfmu`."""

from mbsfmu.cli import main

main()
