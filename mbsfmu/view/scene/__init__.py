"""Machines in motion: from the joint coordinates of runs to pages that show them."""

from mbsfmu.view.scene.animation import Animation, animate
from mbsfmu.view.scene.payload import motion

__all__ = ["Animation", "animate", "motion"]
