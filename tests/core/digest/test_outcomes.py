"""Recorded output of runners after failures, and the lines that a digest quotes (DIG-6).

`recorded/` has their outputs as they were, but for the folders that they ran in.
"""

from pathlib import Path

import pytest

from codex_checkpoints.core.digest.outcomes import telling_lines

RECORDED = Path(__file__).parent / "recorded"

TOLD = {
    "pytest": [
        "FAILED test_core.py::test_half - assert 0 == 0.5",
        "E        +  where 0 = div(1, 2)",
        "core.py:2: ZeroDivisionError",
        "========================= 2 failed, 1 passed in 1.06s ==========================",
    ],
    "pytest-quiet-colour": [
        "FAILED test_core.py::test_zero - ZeroDivisionError: integer division or modulo by zero",
        "2 failed, 1 passed in 1.08s",
    ],
    "pytest-missing": ["ERROR: file or directory not found: nowhere.py"],
    "unittest": [
        "ERROR: test_zero (__main__.Division.test_zero)",
        'File "/home/dev/demo/py/core.py", line 2, in div',
        "FAIL: test_half (__main__.Division.test_half)",
        "AssertionError: 0 != 0.5",
        "FAILED (failures=1, errors=1)",
    ],
    "python-traceback": [
        'File "/home/dev/demo/py/core.py", line 2, in div',
        "ZeroDivisionError: integer division or modulo by zero",
    ],
    "cargo-test": [
        "test tests::half_is_rounded_up ... FAILED",
        "left: 0",
        "right: 1",
        "thread 'tests::zero' (26688) panicked at src/lib.rs:2:5:",
    ],
    "cargo-build": ["error[E0425]: cannot find value `c` in this scope", "--> src/lib.rs:2:9"],
    "go-test": [
        "--- FAIL: TestHalf (0.00s)",
        "core_test.go:13: Div(1, 2) = 0, want 1",
        "panic: runtime error: integer divide by zero [recovered, repanicked]",
        "FAIL\texample.org/demo\t0.005s",
    ],
    "go-build": ["./core.go:4:37: undefined: c"],
    "jest": ["✕ keeps the half (4 ms)", "Expected: 0.5", "Received: 0"],
    "jest-colour": ["✕ of zero is zero", "Tests:       2 failed, 1 passed, 3 total"],
    "vitest": [
        "FAIL  core.vi.test.js > div > keeps the half",
        "AssertionError: expected +0 to be 0.5 // Object.is equality",
    ],
    "node-test": ["not ok 2 - keeps the half", "expected: 0.5", "actual: 0", "# fail 1"],
    "tsc": ["wrong.ts(1,7): error TS2322: Type 'string' is not assignable to type 'number'."],
    "tsc-pretty": ["wrong.ts:3:14 - error TS2304: Cannot find name 'c'."],
    "eslint": ["3:14  error  'c' is not defined                           no-undef"],
    "npm-missing": ['npm error Missing script: "nothing"'],
    "npm-broken": ["> exit 3"],
    "make": [
        "main.c:3:20: error: ‘half’ undeclared (first use in this function)",
        "make: *** [Makefile:4: main] Error 1",
    ],
    "shell-missing": ["bash: line 1: nosuch: command not found"],
}


@pytest.mark.parametrize("name", sorted(TOLD))
def test_failing_run_quotes_the_lines_with_the_reason(name: str) -> None:
    output = (RECORDED / f"{name}.txt").read_text(encoding="utf-8")

    lines = telling_lines(output, failed=True)

    assert [line for line in TOLD[name] if line not in lines] == []
    assert len(lines) <= 11


def test_every_recorded_run_is_tested() -> None:
    assert {path.stem for path in RECORDED.glob("*.txt")} == set(TOLD)
