"""Tracing of NumPy code to CasADi: symbols, kernels, functions over shared arrays, caches."""
