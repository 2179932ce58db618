"""The extension's protocol.ts and limits.ts agree with the server."""

from typing import get_type_hints

from attrs import has

from codex_checkpoints.doors import protocol, typescript


def test_generated_types_are_current():
    command = "python -m codex_checkpoints.doors.typescript"

    assert not typescript.difference(), f"{command} writes it anew\n{typescript.difference()}"


def test_each_method_and_notification_has_a_constant():
    text = typescript.generate()

    for each in (*protocol.METHODS, *protocol.EVENTS):
        assert text.count(f'"{each.name}"') == 1
        assert f"{each.params.__name__}" in text


def test_no_two_records_have_one_name():
    text = typescript.generate()
    used = {
        part
        for record in typescript.RECORDS.values()
        for kind in get_type_hints(record).values()
        for part in typescript.parts_of(kind)
        if has(part)
    }

    assert used <= {*typescript.RECORDS.values()}
    assert all(text.count(f"export interface {name} ") <= 1 for name in typescript.RECORDS)


def test_each_field_has_its_wire_name():
    text = typescript.generate()

    assert "  readonly workDoneToken: number | string | null;" in text
    assert "  readonly items: readonly SessionSummary[];" in text
    assert "  readonly skipped: Readonly<Record<string, number>>;" in text
    assert "  readonly settings: Readonly<Record<string, unknown>>;" in text
