"""Names of files: text alone, one name for one file (rules, "Paths")."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codex_checkpoints.core.paths import FileUri, absolute_of, encoded, uri_of

POSIX = "/home/ana/shop"
WINDOWS = r"C:\Users\Ana\shop"


def named(
    path: str,
    base: str | None = POSIX,
    folder: str | None = None,
    turn_folder: str | None = None,
) -> str | None:
    found = uri_of(path, folder=folder, turn_folder=turn_folder, base=base)
    return None if found is None else found.uri


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("auth.py", "auth.py"),
        ("./src//auth.py", "src/auth.py"),
        ("src/../auth.py", "auth.py"),
        ("/home/ana/shop/src/auth.py", "src/auth.py"),
        ("/etc/hosts", "/etc/hosts"),
        ("//etc/hosts", "/etc/hosts"),
        ("../other/a.py", "/home/ana/other/a.py"),
        ("../shop/a.py", "a.py"),
        ("../../../../../etc/hosts", "/etc/hosts"),
        ("/home/ana/shopping/a", "/home/ana/shopping/a"),
        ("/home/ana/Shop/a", "/home/ana/Shop/a"),
        ("/", "/"),
        ("..", "/home/ana"),
        ("a\\b.py", "a\\b.py"),
        (" a ", " a "),
        ("a%20b", "a%20b"),
        ("file:///home/ana/shop/a%20b.py", "a b.py"),
        ("FILE://localhost/home/ana/shop/%C3%A4", "ä"),
        ("file:///C:/a", "/C:/a"),
        ("file:///x%FFy%zz", "/x\ufffdy%zz"),
        ("file:/x", "file:/x"),
    ],
)
def test_path_is_relative_to_the_base_or_absolute(path: str, uri: str) -> None:
    assert named(path) == uri


@pytest.mark.parametrize(
    "path", ["", ".", POSIX, POSIX + "/", "./src/..", "../shop", "file://", "file://host/a"]
)
def test_base_itself_and_an_empty_path_are_not_files(path: str) -> None:
    assert named(path) is None


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("src\\auth.py", "src/auth.py"),
        ("c:\\USERS\\ana\\SHOP\\Src\\A.py", "Src/A.py"),
        ("d:\\data\\A.csv", "D:/data/A.csv"),
        ("C:\\", "C:/"),
        ("D:a.py", "D:/a.py"),
        ("\\Windows\\x", "C:/Windows/x"),
        ("/Users/Ana/shop/x", "x"),
        ("..\\..\\..\\..\\x", "C:/x"),
        ("\\\\host\\share\\x\\..\\y", "//host/share/y"),
        ("//host/share/..", "//host/share"),
        ("\\\\?\\C:\\Users\\Ana\\shop\\a", "a"),
        ("//?/d:/a", "D:/a"),
        ("\\\\?\\UNC\\host\\share\\a", "//host/share/a"),
        ("\\\\?\\unc\\?\\c:\\a", "C:/a"),
        ("\\\\?\\Volume{1}\\a", "//?/Volume{1}/a"),
        ("\\\\", "C:/"),
        ("file:///c:/Users/Ana/shop/a%20b", "a b"),
        ("file:///C%3A/x", "C:/x"),
        ("file://C:/x", "C:/x"),
        ("file://localhost/c:/x", "C:/x"),
        ("file://host/share/x", "//host/share/x"),
        ("file:///x", "C:/x"),
        ("./C:x", "C:/Users/Ana/shop/C:x"),
    ],
)
def test_path_under_a_windows_base_has_slashes_and_ignores_case(path: str, uri: str) -> None:
    assert named(path, WINDOWS) == uri


@pytest.mark.parametrize(
    "base",
    [
        r"C:\Users\Ana\shop",
        "c:/users/ana/shop/",
        r"\\?\C:\Users\Ana\shop",
        "file:///C:/Users/Ana/shop",
        "file:///c%3a/Users/Ana/shop/",
        "file://localhost/C:/Users/Ana/shop",
    ],
)
def test_windows_base_may_have_any_spelling(base: str) -> None:
    assert named(r"C:\users\ANA\Shop\src\a.py", base) == "src/a.py"
    assert named(base, base) is None


@pytest.mark.parametrize(
    "base", [r"\\host\share\shop", r"\\?\UNC\HOST\share\shop", "file://host/share/shop"]
)
def test_base_may_be_on_another_host(base: str) -> None:
    assert named(r"\\HOST\Share\shop\a", base) == "a"
    assert named("..\\a", base) in {"//host/share/a", "//HOST/share/a"}
    assert named("\\a", base) in {"//host/share/a", "//HOST/share/a"}


def test_host_alone_is_a_base() -> None:
    assert named(r"\\host\share\a", r"\\host") == "share/a"
    assert named(r"\\host", r"\\host") is None


def test_case_is_ignored_by_unicode_case_folding() -> None:
    assert named(r"C:\STRASSE\a", r"c:\straße") == "a"
    assert named("/STRASSE/a", "/straße") == "/STRASSE/a"


@pytest.mark.parametrize(
    ("base", "path", "uri"),
    [
        ("/", "/a/b", "a/b"),
        ("/", "a", "a"),
        ("/", "/", None),
        ("/home/ana/", "/home/ana/a", "a"),
        ("/home/./x/../ana", "/home/ana/a", "a"),
        ("file:///home/ana%20x", "/home/ana x/a", "a"),
        ("C:\\", "c:\\a\\b", "a/b"),
        ("C:\\", "C:", None),
    ],
)
def test_base_is_normalised_first(base: str, path: str, uri: str | None) -> None:
    assert named(path, base) == uri


@pytest.mark.parametrize(
    ("folder", "turn_folder", "uri"),
    [
        (None, None, "a.py"),
        ("server", None, "server/a.py"),
        ("/home/ana/shop/web", "/tmp", "web/a.py"),
        ("web", "/home/ana/shop/x", "x/web/a.py"),
        ("web", "x", "x/web/a.py"),
        ("..", None, "/home/ana/a.py"),
        (None, "/tmp", "/tmp/a.py"),
        ("file:///home/ana/shop/web", "/tmp", "web/a.py"),
        ("../y", "file:///home/ana/shop/x", "y/a.py"),
    ],
)
def test_relative_path_starts_at_the_folder_of_the_call_then_turn_then_base(
    folder: str | None, turn_folder: str | None, uri: str
) -> None:
    assert named("a.py", POSIX, folder, turn_folder) == uri


@pytest.mark.parametrize("base", [None, "", "shop", "./shop", "C:", "file://"])
@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("a/./b", "a/b"),
        ("../a", "../a"),
        ("a/../../../b", "../../b"),
        ("..", ".."),
        ("a/..", None),
        ("a\\b", "a\\b"),
        ("/etc/hosts", "/etc/hosts"),
        ("/../a", "/a"),
    ],
)
def test_without_an_absolute_base_a_relative_path_stays_relative(
    base: str | None, path: str, uri: str | None
) -> None:
    assert named(path, base) == uri


def test_without_a_base_the_first_absolute_path_gives_the_system() -> None:
    assert named("C:\\x\\y", None) == "C:/x/y"
    assert named("x\\y", None, folder="d:\\z") == "D:/z/x/y"
    assert named("x\\y", None, folder="d:\\z", turn_folder="/home") == "/home/d:\\z/x\\y"


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("a\nb", "a%0Ab"),
        ("a\x00\x7f\x85b", "a%00%7F%C2%85b"),
        ("a\u2028b\u202eb\u2066", "a%E2%80%A8b%E2%80%AEb%E2%81%A6"),
        ("file:///home/ana/shop/a%0ab", "a%0Ab"),
        ("/tmp/\t", "/tmp/%09"),
        ("a\ud800b", "a\ufffdb"),
    ],
)
def test_control_characters_are_encoded_and_reported(path: str, uri: str) -> None:
    assert uri_of(path, folder=None, turn_folder=None, base=POSIX) == FileUri(uri, encoded=True)


@pytest.mark.parametrize("path", ["a b", "é", "日本", "🎉", "a%0Ab", "\u200b"])
def test_other_characters_stay_as_they_are(path: str) -> None:
    assert uri_of(path, folder=None, turn_folder=None, base=POSIX) == FileUri(path, encoded=False)
    assert encoded(path) == path


def test_a_control_character_above_the_base_changes_nothing() -> None:
    found = uri_of("/a\nb/c", folder=None, turn_folder=None, base="/a\nb")
    assert found == FileUri("c", encoded=False)


def test_uri_has_at_most_1024_code_points() -> None:
    assert named("🎉" * 1024) == "🎉" * 1024
    assert named("a" * 1025) is None
    assert named("a" * 1022 + "\n") is None
    assert named("a/../" * 400 + "b") == "b"


def test_path_that_no_system_opens_is_not_read() -> None:
    assert named("./" * 40_000 + "a") is None
    assert named("a", folder="x" * 100_000) is None


@pytest.mark.parametrize(
    ("uri", "base", "path"),
    [
        ("src/a.py", POSIX, "/home/ana/shop/src/a.py"),
        ("/etc/hosts", POSIX, "/etc/hosts"),
        ("a", "/", "/a"),
        ("a\\b", POSIX, "/home/ana/shop/a\\b"),
        ("file:/x", POSIX, "/home/ana/shop/file:/x"),
        ("a", "file:///home/ana", "/home/ana/a"),
        ("src/a.py", WINDOWS, "C:/Users/Ana/shop/src/a.py"),
        ("a", r"\\host\share\x", "//host/share/x/a"),
        ("D:/x", WINDOWS, "D:/x"),
        ("//host/share/x", WINDOWS, "//host/share/x"),
        ("/etc/hosts", None, "/etc/hosts"),
        ("C:/x", None, "C:/x"),
        ("a", None, None),
        ("a", "shop", None),
        ("../a", None, None),
    ],
)
def test_uri_leads_back_to_the_file(uri: str, base: str | None, path: str | None) -> None:
    assert absolute_of(uri, base) == path


PATHS = st.lists(
    st.sampled_from(
        # What has a meaning somewhere, and a little that has none.
        ["/", "\\", "..", ".", "a", "B", "ß", "C:", "c:", "d", ":", "//", "\\\\", "?", "UNC", "~"]
    )
    | st.sampled_from(
        ["file://", "localhost", "%41", "%2F", "home", "ana", " ", "\n", "\ud800", "\u202e"]
    ),
    max_size=12,
).map("".join)
BASES = st.sampled_from(
    [POSIX, "/", WINDOWS, "d:/", r"\\host\share\x", r"\\host", "file:///C:/ana"]
)


@given(path=PATHS, folder=PATHS, base=BASES)
def test_name_leads_to_a_file_of_the_same_name(path: str, folder: str, base: str) -> None:
    found = uri_of(path, folder=folder, turn_folder=None, base=base)
    if found is not None:
        absolute = absolute_of(found.uri, base)
        assert absolute is not None
        assert named(absolute, base) == found.uri
        assert uri_of(found.uri, folder=None, turn_folder=None, base=base) == FileUri(
            found.uri, encoded=False
        )


@given(path=PATHS | st.text(), folder=PATHS | st.none(), base=BASES | PATHS | st.none())
def test_name_is_plain_text_on_one_line(path: str, folder: str | None, base: str | None) -> None:
    found = uri_of(path, folder=folder, turn_folder=None, base=base)
    if found is not None:
        assert found.uri.encode()
        assert found.uri.isprintable() or found.uri == encoded(found.uri)
        if found.uri.startswith("//"):
            return  # The host and its share are names as they are.
        assert not {"", "."} & set(found.uri.strip("/").split("/")[1:])


@given(path=PATHS, moved=st.sampled_from(["/srv/x", "/", "/home/ana"]))
def test_moving_the_folder_changes_no_name_inside_it(path: str, moved: str) -> None:
    here = named(f"{POSIX}/in/{path}")
    there = named(f"{moved}/in/{path}", moved)
    if here is not None and not here.startswith("/") and ".." not in path:
        assert here == there
