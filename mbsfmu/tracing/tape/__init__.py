"""Kernel loops: equations recorded as calls of kernels."""
