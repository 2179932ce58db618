"""The kind of a command, and runs of one program: one rule, its examples."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_checkpoints.core.shell.commands import act_of, covering, is_check, passed_by, program_of
from growth import takes_linear_time

LOOKS = """
ls -la
git status --short
git -C shop --no-pager diff HEAD~1
git stash list
git worktree list
rg -n "total(" src | head -20
cat package.json | jq .scripts
sed 's/^/> /' README.md
find . -name '*.py' | xargs grep -n TODO
node --version
command -v rg || which rg
ps aux | grep node
ss -ltnp | rg 4317 || true
docker compose logs --tail=20
docker ps -a
kubectl get pods
npm ls react
npm run
pip show attrs
python -m json.tool package.json
gh_token=x env | sort
mytool --help
psql -c "select count(*) from orders"
timeout 5 cat log.txt
python -c "print(open('a.py').read()[:200])"
python3 -c "import sys, os; print(sys.version)"
node -e "console.log(require('fs').readFileSync('a.json','utf8'))"
Get-Content AGENTS.md
Get-ChildItem -Recurse src | Select-Object -First 20
Test-Path package.json
$i=1; Get-Content src/app.ts | ForEach-Object { "$i $_"; $i++ }
$lines = Get-Content a.py; $lines[10..20]
(Get-Content a.json | ConvertFrom-Json).scripts
Get-Process | Where-Object { $_.Name -eq 'node' }
powershell -Command "Get-Content README.md"
bash -lc 'ls && pwd'
"""

CHORES = """
mkdir -p src/a
git add -A
git commit -m 'done'
git push origin main
git checkout -b feature
git stash
git fetch && git pull
mv a.py b.py && rm -f c.py
curl wttr.in
curl -s https://example.com/page | head
curl -o f.zip http://localhost:8000/f.zip
npm install left-pad
npm ci
pip install -r requirements.txt
python -m pip install -e .
python -m venv .venv
uv sync
cargo add serde
cargo fmt --all
npx prettier --write src/q.ts
black src
npm run format
make clean
chmod +x build.sh
kill 4242 && sleep 1
sed -i 's/a/b/' a.py
perl -0pi -e 's/a/b/' a.py
rg -l Old src | xargs sed -i 's/Old/New/g'
docker compose down
kubectl apply -f a.yaml
brew install jq
python - <<'E'\\nopen('a.py','w').write('x')\\nE
for f in *.py; do cat $f; done
if [ -f a ]; then cat a; fi
echo hi > a.txt
New-Item -ItemType Directory -Force src
Set-Content -Path a.txt -Value x
Remove-Item -Recurse build
Copy-Item a b; Start-Sleep 1
Invoke-WebRequest https://example.com
"""

CHECKS = """
pytest -q
python -m pytest tests/test_a.py
PYTHONPATH=. timeout 60 pytest -q | tail -5
uv run pytest
npm test
npm run -s typecheck && npm run -s lint
npx tsc --noEmit
pnpm build
yarn test
cargo test -p core
cargo fmt --all -- --check
cargo clippy --fix
go vet ./...
make
make check
./gradlew build
dotnet test
ruff check . && black --check .
prettier --check .
eslint --fix src
mypy src
tsc -p .
bash -n build.sh
./build.sh
bash build.sh
python app.py --port 1
node scripts/sync.mjs
node --check server.js
python -m py_compile a.py
find . -name '*.py' -exec python -m py_compile {} +
curl -s http://localhost:3000/health
curl -i http://127.0.0.1:8080/
docker build .
docker compose up -d
terraform validate
helm lint chart
cd shop && mkdir -p out && npm run build
python - <<'E'\\nfrom shop import cart\\nprint(cart.total([]))\\nE
python -c "import json; assert json.load(open('a.json'))['a'] == 1"
node -e "const {sum} = require('./src/sum'); console.log(sum(1,2))"
(cd shop && npm test)
bash -lc 'cd shop && pytest'
if npm test; then echo ok; fi
for t in a b; do pytest $t; done
OUT=$(pytest -q); echo "$OUT"
Get-Content a.log; npm test
& 'C:\\Program Files\\nodejs\\npm.cmd' run build
if (Test-Path a) { npm test }
$env:CI = '1'; npm run test
Invoke-Pester tests
mytool sync --all
"""


def _listed(text: str) -> list[str]:
    return [line.replace("\\n", "\n") for line in text.strip().split("\n")]


@pytest.mark.parametrize("script", _listed(LOOKS))
def test_look_only_prints(script: str) -> None:
    assert act_of(script) == "look"
    assert not is_check(script, failed=True)  # a search without a hit


@pytest.mark.parametrize("script", _listed(CHORES))
def test_chore_verifies_nothing_unless_it_fails(script: str) -> None:
    assert act_of(script) == "chore"
    assert not is_check(script, failed=False)


@pytest.mark.parametrize("script", _listed(CHECKS))
def test_check_is_a_test_a_build_a_lint_a_type_check_or_a_run(script: str) -> None:
    assert act_of(script) == "check"
    assert is_check(script)


def test_failed_chore_is_a_check_except_for_a_missing_process() -> None:
    assert is_check("npm install", failed=True)
    assert is_check("git push", failed=True)
    assert not is_check("pkill node", failed=True)


@pytest.mark.parametrize(
    "script", ['rg -n "a|b', "grep -n 'it\" src/a.py | head", "cat $(a", "ls `"]
)
def test_look_that_the_shell_cannot_parse_is_not_a_check(script: str) -> None:
    assert not is_check(script, failed=True)


@given(st.text() | st.lists(st.sampled_from(_listed(CHECKS + CHORES + LOOKS))).map(" ; ".join))
def test_any_text_has_a_kind(script: str) -> None:
    assert act_of(script) in {"look", "chore", "check"}
    assert isinstance(program_of(script), str)
    assert passed_by(script) == () or all(passed_by(script))


@pytest.mark.parametrize(
    ("begin", "piece", "end"),
    [
        ("", "a;", ""),
        ("'", "a;", ""),  # cannot be split
        ("", "(", ""),
        ("", "bash -c 'a", ""),
        ("python - <<'E'\n", "import a;", "\nE"),
        ("", "A=$(b)", ""),
        ("", "npx ", ""),
    ],
)
def test_kind_is_found_in_linear_time(begin: str, piece: str, end: str) -> None:
    takes_linear_time(
        lambda script: (act_of(script), program_of(script)),
        lambda size: begin + piece * (size // len(piece)) + end,
    )


# --- programs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "program"),
    [
        ("pytest -q tests/test_a.py", "pytest tests/test_a.py"),
        ("python -m pytest -x", "python -m pytest"),
        ("CI=1 npm run lint -- --fix", "npm run lint"),
        ("npm run -s typecheck", "npm run typecheck"),
        ("npm run -s typecheck && npm run -s test", "npm run typecheck && npm run test"),
        ("npm --prefix web test", "npm --prefix web test"),
        ("cargo test --all", "cargo test"),
        ("cargo test -p core -q", "cargo test -p core"),
        ("/usr/bin/make check", "make check"),
        ("mkdir -p out && ls; pytest -q", "pytest"),
        ("cd shop && pytest -q", "shop: pytest"),
        ("python3 tools/dig.py --deep", "python3 tools/dig.py"),
        ("bash build.sh", "bash build.sh"),
        ("npx tsc --noEmit", "tsc"),
        ("python - <<'E'\nimport shop\nE", ""),
        ("node -e 'dig()'", ""),
        ("$r = npm test; foreach ($x in $r) { npm run lint }", ""),
        ("ls", ""),
    ],
)
def test_program_is_named_with_its_target(script: str, program: str) -> None:
    assert program_of(script) == program


def test_full_run_covers_a_partial_run_and_not_the_reverse() -> None:
    assert "pytest" in covering("pytest tests/test_a.py")
    assert covering("pytest") == ("pytest",)
    assert "pytest tests/test_b.py" not in covering("pytest tests/test_a.py")


def test_two_lines_of_powershell_are_two_programs() -> None:
    lines = (
        "$r = Invoke-RestMethod http://localhost:1/a; if ($r.ok) { dotnet test a }",
        "$r = Invoke-RestMethod http://localhost:1/b; if ($r.ok) { dotnet test b }",
    )

    assert not set(passed_by(lines[0])) & set(covering(lines[1])) - {""}


def test_each_part_of_a_chain_passed_and_only_the_last_of_a_list() -> None:
    assert {"npm run build", "npm test"} <= set(passed_by("npm run build && npm test"))
    assert "npm run build" not in passed_by("npm run build; npm test")
