"""FMUs on other hosts, which are workers of a Dask cluster."""
