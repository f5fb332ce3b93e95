"""Self-contained HTML pages: skeleton, elements, and JavaScript libraries.

It knows arrays, names and units; what a run, a comparison or a machine is, it does not.
"""
