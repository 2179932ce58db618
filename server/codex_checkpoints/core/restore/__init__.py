"""Markers, restores and branches, as values.

`markers` are the saved points and pins.  `trace` reads what a checkpoint does not keep (`gathering`
from its tool calls), `references` names what goes over by name; `carried` is all that goes over,
`pack` the text that a hard restore begins with (`pack_lines` its lines).  `drift` tells what has
changed since.  `recording` makes the record of a restore (`records`), `events` what is logged on
the way, `auditing` checks a log; `written` says how records stand on disk, `sealing` by what they
are checked.  `feedback` has hints that nobody acts on.  `chains` and `lineage` are the tree of
where sessions came from, `difference` compares two states, `summary` has the words for people.

Reading files, drawing ids, asking a clock and publishing a branch belong to the service.
"""
