"""NumPy code traced to CasADi: symbols, kernels, functions over shared arrays, what is kept of them."""
