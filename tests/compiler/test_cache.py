"""The disk cache returns what was stored or nothing, whatever happens to its files."""

import errno
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

from delassus.compiler.host import cache
from delassus.errors import DelassusWarning

KEY = "0123abcd"
OTHER = "deadbeef"
DAY = 86400

posix_only = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs numeric owners and modes")
root_only = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
not_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write all")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "cache"
    monkeypatch.setenv("DELASSUS_CACHE", str(place))
    return place


@pytest.fixture
def entry(folder: Path) -> Path:
    cache.store("object", KEY, b"code")
    return folder / f"{KEY}.object.delassus"


def put(path: Path, blob: bytes) -> None:
    path.write_bytes(blob)
    path.chmod(0o600)


def age(path: Path, days: float) -> None:
    then = time.time() - days * DAY
    os.utime(path, (then, then))


def refused(match: str, kind: str = "object", key: str = KEY) -> bool:
    with pytest.warns(DelassusWarning, match=match):
        return cache.load(kind, key) is None


def raising(error: BaseException) -> object:
    def function(*_: object, **__: object) -> None:
        raise error

    return function


# The folder.


@pytest.mark.parametrize("word", ["off", "0", "no", "false", "", "OFF"])
def test_off_words_disable_the_cache(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELASSUS_CACHE", word)
    cache.store("object", KEY, b"code")
    assert (cache.directory(), cache.load("object", KEY), cache.usage(), cache.clear()) == (
        None,
        None,
        (0, 0),
        0,
    )


def test_variable_names_a_folder_in_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("DELASSUS_CACHE", "~/kernels")
    assert cache.directory() == tmp_path / "kernels"


def test_relative_variable_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DELASSUS_CACHE", "kernels")
    assert cache.directory() == tmp_path / "kernels"


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/xdg"}, "/xdg/delassus"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "/home/me/.cache/delassus"),
        ("linux", {}, "/home/me/.cache/delassus"),
        ("darwin", {"XDG_CACHE_HOME": "/xdg"}, "/home/me/Library/Caches/delassus"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/delassus/cache"),
        ("win32", {}, "/home/me/AppData/Local/delassus/cache"),
    ],
)
@posix_only
def test_default_folder_follows_the_platform(
    platform: str, variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DELASSUS_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/me", **variables}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert cache.directory() == Path(expected)


def test_unknown_home_warns_and_disables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_warned", set())
    monkeypatch.setenv("DELASSUS_CACHE", "~nobody-has-this-name/kernels")
    with pytest.warns(DelassusWarning, match="does not lead to any folder"):
        cache.store("object", KEY, b"code")
    assert cache.load("object", KEY) is None


# Round trips.


@pytest.mark.parametrize("payload", [b"", b"code", bytes(range(256)) * 800, b"\r\n\x1a"])
def test_stored_payload_comes_back(folder: Path, payload: bytes) -> None:
    cache.store("object", KEY, payload)
    assert cache.load("object", KEY) == payload


def test_missing_entry_is_none_without_warning(folder: Path) -> None:
    assert cache.load("object", KEY) is None


def test_second_store_replaces_the_first(entry: Path) -> None:
    cache.store("object", KEY, b"newer code")
    assert cache.load("object", KEY) == b"newer code"


def test_kinds_do_not_mix(entry: Path) -> None:
    assert cache.load("index", KEY) is None


def test_load_makes_no_folder(folder: Path) -> None:
    cache.load("object", KEY)
    assert not folder.exists()


@pytest.mark.parametrize("key", ["", "../x", "ABCD", "a.b", "a/b", "g", "é", "ab\n", "a" * 129, "\x00"])
def test_key_that_is_no_digest_raises(folder: Path, key: str) -> None:
    with pytest.raises(ValueError, match="digest of 1 to 128"):
        cache.load("object", key)
    with pytest.raises(ValueError, match="digest of 1 to 128"):
        cache.store("object", key, b"code")


@pytest.mark.parametrize("kind", ["", "..", "a/b", "Object", "a.b", "a" * 17])
def test_kind_that_is_no_word_raises(folder: Path, kind: str) -> None:
    with pytest.raises(ValueError, match="word of 1 to 16"):
        cache.load(kind, KEY)


# Damage.


def test_every_truncation_is_refused(entry: Path) -> None:
    whole = entry.read_bytes()
    returned = []
    with pytest.warns(DelassusWarning, match="is damaged"):
        for length in range(len(whole)):
            put(entry, whole[:length])
            returned.append(cache.load("object", KEY))
    assert returned == [None] * len(whole)


def test_every_flipped_bit_is_refused(entry: Path) -> None:
    whole = entry.read_bytes()
    returned = []
    with pytest.warns(DelassusWarning, match="is damaged"):
        for bit in range(8 * len(whole)):
            damaged = bytearray(whole)
            damaged[bit // 8] ^= 1 << bit % 8
            put(entry, bytes(damaged))
            returned.append(cache.load("object", KEY))
    assert returned == [None] * (8 * len(whole))


def test_appended_byte_is_refused(entry: Path) -> None:
    put(entry, entry.read_bytes() + b"\0")
    assert refused("is damaged")


def test_entry_renamed_to_another_key_is_refused(entry: Path) -> None:
    entry.rename(entry.with_name(f"{OTHER}.object.delassus"))
    assert refused("is not the cache entry that its name says", key=OTHER)


def test_entry_renamed_to_another_kind_is_refused(entry: Path) -> None:
    entry.rename(entry.with_name(f"{KEY}.index.delassus"))
    assert refused("is not the cache entry that its name says", kind="index")


def test_foreign_file_is_refused(entry: Path) -> None:
    put(entry, b"\x7fELF" + bytes(200))
    assert refused("is damaged")


def test_damaged_entry_is_deleted(entry: Path) -> None:
    put(entry, b"junk")
    assert refused(f"{entry.name} is damaged.*deleted.*compiled again")
    assert not entry.exists()


def test_same_trouble_warns_once(entry: Path) -> None:
    put(entry, b"junk")
    assert refused("is damaged")
    put(entry, b"junk")
    assert cache.load("object", KEY) is None


# Files and folders that others could have changed.


@posix_only
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666, 0o1666])
def test_entry_writable_by_others_is_refused(entry: Path, mode: int) -> None:
    entry.chmod(mode)
    assert refused(f"{entry.name} is writable by other users")


@posix_only
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
@pytest.mark.parametrize("level", [0, 1])
def test_folder_writable_by_others_is_refused(entry: Path, mode: int, level: int) -> None:
    entry.parents[level].chmod(mode)
    assert refused(f"{entry.parents[level].name} is writable by other users.*chmod go-w")


@posix_only
def test_nothing_is_stored_below_an_insecure_folder(folder: Path) -> None:
    folder.parent.chmod(0o777)
    with pytest.warns(DelassusWarning, match="is writable by other users"):
        cache.store("object", KEY, b"code")
    assert not folder.exists()


@posix_only
def test_sticky_parent_is_accepted(entry: Path) -> None:
    entry.parents[1].chmod(0o1777)
    assert cache.load("object", KEY) == b"code"


@posix_only
def test_insecure_folder_behind_a_symbolic_link_is_refused(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = entry.parents[1] / "link"
    link.symlink_to(entry.parent)
    entry.parent.chmod(0o777)
    monkeypatch.setenv("DELASSUS_CACHE", str(link))
    assert refused("is writable by other users")


@posix_only
def test_secure_folder_behind_a_symbolic_link_is_used(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = entry.parents[1] / "link"
    link.symlink_to(entry.parent)
    monkeypatch.setenv("DELASSUS_CACHE", str(link))
    assert cache.load("object", KEY) == b"code"


@posix_only
def test_entry_that_is_a_symbolic_link_is_refused(entry: Path) -> None:
    entry.rename(entry.with_name("real"))
    entry.symlink_to(entry.with_name("real"))
    assert refused(f"{entry.name} cannot be read .*symbolic link")


@posix_only
def test_entry_that_is_a_folder_is_refused(entry: Path) -> None:
    entry.unlink()
    entry.mkdir()
    assert refused(f"{entry.name} is not a regular file")


@posix_only
def test_entry_that_is_a_pipe_is_refused_without_waiting(entry: Path) -> None:
    entry.unlink()
    os.mkfifo(entry)
    assert refused(f"{entry.name} is not a regular file")


@root_only
def test_entry_of_another_owner_is_refused(entry: Path) -> None:
    os.chown(entry, 12345, -1)
    assert refused(f"{entry.name} belongs to another user .number 12345")


@root_only
def test_folder_of_another_owner_is_refused(entry: Path) -> None:
    os.chown(entry.parent, 12345, -1)
    assert refused(f"{entry.parent.name} belongs to another user .number 12345")


@posix_only
def test_another_user_refuses_our_cache(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    someone_else = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: someone_else)
    assert refused("belongs to another user")


@posix_only
def test_owners_and_modes_are_not_judged_without_geteuid(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry.chmod(0o666)
    monkeypatch.delattr(os, "geteuid")
    assert cache.load("object", KEY) == b"code"


@posix_only
def test_folders_and_files_are_made_for_this_user_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / "a" / "b"
    monkeypatch.setenv("DELASSUS_CACHE", str(deep))
    mask = os.umask(0o002)
    try:
        cache.store("object", KEY, b"code")
    finally:
        os.umask(mask)
    made = (deep.parent, deep, deep / f"{KEY}.object.delassus")
    assert [path.stat().st_mode & 0o777 for path in made] == [0o700, 0o700, 0o600]


# Stores that fail.


def test_folder_that_is_a_file_warns_once(folder: Path) -> None:
    folder.write_bytes(b"not a folder")
    with pytest.warns(DelassusWarning, match="is not a folder"):
        cache.store("object", KEY, b"code")
    cache.store("object", OTHER, b"code")
    assert cache.load("object", KEY) is None


@not_root
def test_read_only_folder_warns_once(entry: Path) -> None:
    entry.parent.chmod(0o500)
    with pytest.warns(DelassusWarning, match="cannot be written .Permission denied"):
        cache.store("object", OTHER, b"code")
    cache.store("index", OTHER, b"code")
    assert cache.load("object", KEY) == b"code"


@not_root
def test_folder_that_cannot_be_entered_warns_once(entry: Path) -> None:
    entry.parents[1].chmod(0o600)
    try:
        assert refused("cannot be examined")
        assert cache.load("object", OTHER) is None
    finally:
        entry.parents[1].chmod(0o700)


def test_read_only_disk_warns_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "mkdir", raising(OSError(errno.EROFS, "Read-only file system")))
    with pytest.warns(DelassusWarning, match=f"{folder.name} cannot be written .Read-only.*not kept"):
        cache.store("object", KEY, b"code")
    cache.store("object", OTHER, b"code")
    assert not folder.exists()


def test_missing_drive_warns(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "lstat", raising(FileNotFoundError(errno.ENOENT, "No such file")))
    with pytest.warns(DelassusWarning, match="cannot be written .No such file"):
        cache.store("object", KEY, b"code")


def test_full_disk_while_writing_leaves_the_old_entry_alone(entry: Path) -> None:
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with pytest.warns(DelassusWarning, match=f"{entry.parent.name} cannot be written .*Free space"):
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
        try:
            cache.store("object", KEY, bytes(100_000))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(entry.parent.iterdir()) == [entry]
    assert cache.load("object", KEY) == b"code"


def test_full_disk_while_replacing_warns_once(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "replace", raising(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.warns(DelassusWarning, match="No space left on device"):
        cache.store("object", KEY, b"newer code")
    cache.store("object", OTHER, b"newer code")
    assert list(entry.parent.iterdir()) == [entry]


@pytest.mark.parametrize("function", ["replace", "fdopen"])
def test_interrupted_store_leaves_no_temporary_file(
    entry: Path, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, function, raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        cache.store("object", KEY, b"newer code")
    assert list(entry.parent.iterdir()) == [entry]


def test_interrupt_right_after_the_file_is_made_leaves_none(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really_open = os.open

    def make_and_interrupt(*arguments: object) -> int:
        os.close(really_open(*arguments))  # type: ignore[arg-type]
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "open", make_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        cache.store("object", KEY, b"newer code")
    assert list(entry.parent.iterdir()) == [entry]


# Several processes.

WORKER = """
import sys
from delassus.compiler.host import cache
worker = int(sys.argv[1])
for turn in range(60):
    for key in ("aa", "bb", "cc"):
        cache.store("object", key, bytes([worker]) * (20_000 + 1000 * worker + turn))
        seen = cache.load("object", key)
        if seen is None or len(set(seen)) != 1 or not 0 <= len(seen) - 20_000 - 1000 * seen[0] < 60:
            sys.exit(f"worker {worker} saw a mixed or missing entry in turn {turn}")
"""


def test_four_processes_at_once_see_whole_entries(folder: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", WORKER]
    workers = [subprocess.Popen([*command, str(number)], stderr=subprocess.PIPE) for number in range(4)]
    complaints = [worker.communicate(timeout=120)[1] for worker in workers]
    assert ([worker.returncode for worker in workers], complaints) == ([0] * 4, [b""] * 4)


# Size.


def test_usage_of_no_folder_is_zero(folder: Path) -> None:
    assert cache.usage() == (0, 0)


def test_usage_counts_entries_only(entry: Path) -> None:
    put(entry.with_name("notes.txt"), b"mine")
    cache.store("index", KEY, b"more")
    assert cache.usage() == (
        2,
        entry.stat().st_size + entry.with_name(f"{KEY}.index.delassus").stat().st_size,
    )


def test_clear_removes_entries_and_nothing_else(entry: Path) -> None:
    mine = [entry.with_name(name) for name in ("notes.txt", "notes.delassus", "ab.object.delassus.bak")]
    for path in mine:
        put(path, b"mine")
    assert cache.clear() == 1
    assert sorted(entry.parent.iterdir()) == sorted(mine)


def test_limit_evicts_the_least_recently_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LIMIT", 10_000)
    for days, key in ((3, "aa"), (9, "bb"), (6, "cc")):
        cache.store("object", key, bytes(2500))
        age(folder / f"{key}.object.delassus", days)
    cache.store("object", "dd", bytes(2500))
    assert [key for key in ("aa", "bb", "cc", "dd") if cache.load("object", key)] == ["aa", "cc", "dd"]


def test_cache_of_many_small_entries_stays_below_the_limit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LIMIT", 10_000)
    largest = 0
    for number in range(100):
        cache.store("object", f"{number:04x}", bytes(200))
        largest = max(largest, cache.usage()[1])
    assert 8_000 < largest <= 10_000


def test_stores_below_a_tenth_of_the_limit_do_not_scan_again(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_files", raising(RuntimeError("scanned")))
    cache.store("object", OTHER, b"code")
    assert cache.load("object", OTHER) == b"code"


def test_load_of_an_entry_unused_for_a_day_marks_it_used(entry: Path) -> None:
    age(entry, days=2)
    cache.load("object", KEY)
    assert time.time() - entry.stat().st_mtime < DAY / 2


def test_load_of_an_entry_used_today_does_not_write(entry: Path) -> None:
    age(entry, days=0.5)
    before = entry.stat().st_mtime_ns
    cache.load("object", KEY)
    assert entry.stat().st_mtime_ns == before


def test_temporary_files_of_killed_processes_go_after_a_day(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    old, young = (folder / f"{digit * 32}.delassus-part" for digit in "ab")
    put(old, b"half")
    put(young, b"half")
    age(old, days=2)
    cache.store("object", KEY, b"code")
    assert (old.exists(), young.exists()) == (False, True)


def test_warnings_as_errors_leave_no_temporary_file(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "replace", raising(OSError(errno.ENOSPC, "No space left on device")))
    with warnings.catch_warnings(), pytest.raises(DelassusWarning):
        warnings.simplefilter("error")
        cache.store("object", KEY, b"newer code")
    assert list(entry.parent.iterdir()) == [entry]
