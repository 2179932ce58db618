"""The extension's protocol.ts and limits.ts say what the server says."""

from codex_checkpoints import protocol, typescript


def test_the_generated_types_are_current():
    command = "python -m codex_checkpoints.typescript"

    assert not typescript.difference(), f"{command} writes it anew\n{typescript.difference()}"


def test_each_method_and_notification_has_a_constant():
    text = typescript.generate()

    for each in (*protocol.METHODS, *protocol.EVENTS):
        assert text.count(f'"{each.name}"') == 1
        assert f"{each.params.__name__}" in text


def test_each_field_has_its_wire_name():
    text = typescript.generate()

    assert "  readonly workDoneToken: number | string | null;" in text
    assert "  readonly items: readonly SessionSummary[];" in text
    assert "  readonly skipped: Readonly<Record<string, number>>;" in text
    assert "  readonly settings: Readonly<Record<string, unknown>>;" in text
