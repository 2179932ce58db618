"""What we keep of a session.

`records` are the nouns, `caps` the bounds, `reducer` applies one item to the state, `replay`
applies a whole stream of bytes, `memory` replays accepted updates, `canonical` writes the bytes,
`view` the text a model reads, `text` and `redaction` what becomes of a value before it is stored.
"""
