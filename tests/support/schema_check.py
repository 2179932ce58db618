r"""Check a JSON value against a JSON Schema, whose patterns may have `\p{L}` and `\p{N}`."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Any, TypeGuard, cast

from jsonschema import Draft202012Validator, ValidationError, validators

LETTERS_OR_DIGITS = re.compile(r"\\p\{(.)\}")


def is_object(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)


def texts(value: object) -> Iterator[str]:
    """Yield every text in a value, names of keys included."""
    if isinstance(value, str):
        yield value
    elif is_list(value):
        for part in value:
            yield from texts(part)
    elif is_object(value):
        for key, part in value.items():
            yield key
            yield from texts(part)


def fits(value: object, rules: Any) -> bool:  # noqa: ANN401 - a schema
    """Tell whether a value fits a schema."""
    return _Schema(rules).is_valid(value)


def _pattern(_: object, pattern: str, text: object, __: object) -> Iterator[ValidationError]:
    if not isinstance(text, str):
        return
    if LETTERS_OR_DIGITS.search(pattern):
        # Python's `re` knows no \p: each letter becomes L, each digit N, in text and pattern.
        pattern = LETTERS_OR_DIGITS.sub(r"\1", pattern).replace("$", r"\Z")
        kinds = [unicodedata.category(character)[0] for character in text]
        text = "".join(
            kind if kind in "LN" else each for kind, each in zip(kinds, text, strict=True)
        )
    if re.search(pattern, text) is None:
        yield ValidationError("another pattern")


_Schema = cast("Any", validators).extend(Draft202012Validator, {"pattern": _pattern})
