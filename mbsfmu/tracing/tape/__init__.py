"""Code in loops: equations recorded as calls of kernels."""
