"""kernel loops: equations recorded as calls of kernels."""
