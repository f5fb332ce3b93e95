"""Machines in motion: from the joint coordinates of runs to pages that show them."""

from mbsfmu.motion.animation import Animation, animate
from mbsfmu.motion.payload import motion

__all__ = ["Animation", "animate", "motion"]
