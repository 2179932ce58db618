"""The checkpoint of a session.

`records` has its records and bounds.  `replay` makes it from bytes, with `reducer`, `state` and
`memory`, which replays accepted updates.  `claims` validates new updates.  `canonical` writes the
bytes, `view` the text for a model.  `text` redacts and shortens values.
"""
