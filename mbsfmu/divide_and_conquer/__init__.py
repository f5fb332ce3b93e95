"""Divide and conquer: binary tree, articulated bodies, assembly and elimination by levels."""
