"""The characters that no value and no name may hold ("Text of values" in interfaces.md).

What becomes of them is said by whoever makes a value or a name: `checkpoint/text.py`, `paths`.
"""

CONTROLS = r"\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069"
"""The control characters, as the inside of a regular expression's class."""
