"""Markers, restores and branches, as values.

`markers` and pins; `trace`, `references` and `carried` are what goes over, `pack` the text that a
hard restore begins with, `drift` what has changed since.  `records` and `events` are what is
written down, each line with its digest (`sealing`).  `chains` and `lineage` know the tree.
"""
