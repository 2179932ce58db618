"""Markers, restores and branches.

`markers` has markers, pins and hints.  `trace`, `references` and `pack` collect what a restore
takes along; `pack` also makes the text that a hard restore begins with.  `records` and `events` are
written down, each line with its digest.  `lineage` knows the tree of sessions, `summary` the words
for people.
"""
