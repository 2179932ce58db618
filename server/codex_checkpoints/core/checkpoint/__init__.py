"""The checkpoint of a session.

`records` has its records, bounds and bytes.  `replay` makes it from bytes, with `state` and
`memory`, which replays accepted updates.  `note_rules` validates new updates.  `view` is the text
for a model.  `redaction` redacts and shortens values.
"""
