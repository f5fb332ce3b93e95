"""Pages that load nothing: their skeleton, the elements that stand in them, and the libraries that draw those.

It knows arrays, names and units; what a run, a comparison or a machine is, it does not.
"""
