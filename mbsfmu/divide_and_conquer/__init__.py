"""Divide and conquer: the binary tree, articulated bodies, their assembly and elimination, level by level."""
