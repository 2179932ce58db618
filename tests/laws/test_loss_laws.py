"""Laws of losses, for any session."""

from attrs import astuple
from hypothesis import given, settings
from hypothesis import strategies as st

import rollouts as r
from codex_checkpoints.core.agents.codex.history.items import user_message
from codex_checkpoints.core.losses.file_activity import MAX_LISTED, MAX_REREADS
from compaction_losses import losses
from generated_rollouts import damaged, hostile_lines, sessions
from histories import windows

WORDS = st.sampled_from(["a.py", "b.py", "make", "tidy up", "/home/ana/shop/a.py", ""])


@st.composite
def compacting(draw: st.DrawFn) -> bytes:
    """Make up a session that is compacted again and again."""
    paths = st.sampled_from(["a.py", "b.py", "src/c.py"])
    steps = st.one_of(
        paths.map(lambda path: r.shell(f"cat {path}", path, reads=[path])),
        paths.map(lambda path: r.patch(update=path)),
        st.integers(0, 1).map(lambda code: r.shell("make", "end", exit_code=code)),
        WORDS.map(lambda text: r.plan((text, False), ("done", True))),
        st.lists(WORDS, max_size=3).map(lambda said: r.compacted("m", [user_message(said)])),
        st.just(r.compacted("changed a.py")),
        st.just(r.compacted("", [{"type": "compaction", "encrypted_content": "g"}])),
    )
    turns = st.lists(
        st.one_of(
            st.tuples(WORDS, st.lists(steps, max_size=6)).map(
                lambda told: r.turn(r.user(told[0]), *told[1])
            ),
            st.integers(1, 2).map(r.rollback),
        ),
        max_size=6,
    )
    form: r.Form = draw(st.sampled_from(["paginated", "legacy"]))
    return r.rollout(r.session(form), *draw(turns))


ANY = st.one_of(compacting(), sessions(), damaged(), hostile_lines())


def half() -> settings:
    """Try half as often as the profile says: each case reads a session several times."""
    return settings(max_examples=max(10, settings().max_examples // 2))


@half()
@given(data=ANY, places=st.lists(st.floats(0, 1), max_size=4))
def test_losses_do_not_depend_on_how_the_bytes_arrive(data: bytes, places: list[float]):
    pieces = [int(place * len(data)) for place in places]

    assert losses(data, pieces=pieces) == losses(data)


@half()
@given(data=ANY)
def test_every_window_except_the_first_has_a_loss(data: bytes):
    found = losses(data)

    counting = [(each.number, each.opened_at_seq) for each in found if each.counts]
    assert counting == [(each.number, each.opened_seq) for each in windows(data)[1:]]
    assert all(each.number is None for each in found if not each.counts)


@half()
@given(data=ANY)
def test_numbers_of_a_loss_agree(data: bytes):
    for each in losses(data):
        assert each.reads >= each.rereads_unchanged >= sum(it.times for it in each.rereads)
        assert len(each.rereads) <= MAX_REREADS
        assert max(len(each.edited_files), len(each.failing_commands)) <= MAX_LISTED
        told = (*each.open_plan_steps, *each.edited_files, *each.failing_commands)
        assert each.sealed or all(it.lost is not None for it in told)
        listed = len(told) + (each.task is not None)
        assert sum(astuple(each.totals)) == listed + each.not_listed
