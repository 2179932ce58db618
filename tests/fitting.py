"""Hold a JSON value against a JSON Schema, as far as our own schema goes; and look inside values.

Only the keywords that we use are known: another one fails the test instead of being passed over.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeGuard

Rules = Mapping[str, object]

KEYWORDS = {
    "$schema", "title", "description", "type", "enum", "const", "pattern", "minLength", "maxLength",
    "items", "maxItems", "properties", "required", "additionalProperties", "propertyNames",
    "if", "then", "else",
}  # fmt: skip
TYPES: Mapping[object, type] = {"object": dict, "array": list, "string": str, "boolean": bool}
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


def fits(value: object, rules: object) -> bool:
    """Tell whether a value fits a schema."""
    assert is_object(rules), rules
    assert rules.keys() <= KEYWORDS
    if "type" in rules and not isinstance(value, TYPES[rules["type"]]):
        return False
    if "enum" in rules and value not in _list(rules["enum"]):
        return False
    if "const" in rules and value != rules["const"]:
        return False
    if "if" in rules and not fits(value, rules["then" if fits(value, rules["if"]) else "else"]):
        return False
    if isinstance(value, str):
        return _text_fits(value, rules)
    if is_list(value):
        most = rules.get("maxItems", len(value))
        assert isinstance(most, int)
        return len(value) <= most and all(fits(part, rules.get("items", {})) for part in value)
    return _object_fits(value, rules) if is_object(value) else True


def _list(value: object) -> Sequence[object]:
    assert is_list(value)
    return value


def _object_fits(value: Mapping[str, object], rules: Rules) -> bool:
    properties = rules.get("properties", {})
    others = rules.get("additionalProperties", {})
    assert is_object(properties)
    for key, part in value.items():
        if not fits(key, rules.get("propertyNames", {})):
            return False
        rule = properties.get(key, others)
        if rule is False or not fits(part, rule):
            return False
    return set(_list(rules.get("required", []))) <= value.keys()


def _text_fits(text: str, rules: Rules) -> bool:
    least, most = rules.get("minLength", 0), rules.get("maxLength", len(text))
    pattern = rules.get("pattern", "")
    assert isinstance(least, int)
    assert isinstance(most, int)
    assert isinstance(pattern, str)
    if LETTERS_OR_DIGITS.search(pattern):
        # Python's `re` knows no \p: each letter becomes L, each digit N, in text and pattern.
        pattern = LETTERS_OR_DIGITS.sub(r"\1", pattern).replace("$", r"\Z")
        kinds = [unicodedata.category(character)[0] for character in text]
        text = "".join(
            kind if kind in "LN" else each for kind, each in zip(kinds, text, strict=True)
        )
    return least <= len(text) <= most and re.search(pattern, text) is not None
