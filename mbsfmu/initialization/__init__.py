"""The start of a system: loops closed, independent coordinates chosen, accelerations and multipliers found."""
