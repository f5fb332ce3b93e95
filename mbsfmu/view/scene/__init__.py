"""Animations: from recorded joint coordinates to pages."""

from mbsfmu.view.scene.animation import Animation, animate
from mbsfmu.view.scene.payload import motion

__all__ = ["Animation", "animate", "motion"]
