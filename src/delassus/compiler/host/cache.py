"""A per-user disk cache of byte strings that rejects damaged and forged entries.

The entries are native object code, and loading wrong object code crashes the process or runs a foreign program. So an
entry is read into memory once, from a file in folders that only this user (or root) can change, and its digest is
verified on the bytes that are returned.

A failure causes a compilation, never an exception. It is reported once, as a `DelassusWarning`.
"""

import hashlib
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from itertools import accumulate
from pathlib import Path

from delassus.errors import warn

VARIABLE = "DELASSUS_CACHE"
LIMIT = 1 << 30  # limit of the total size of all entries [bytes]

_OFF = frozenset({"", "0", "off", "no", "false"})
_MAGIC = "delassus cache entry, format 1"
_ENTRY = re.compile(r"[0-9a-f]{1,128}\.[a-z]{1,16}\.delassus")
_PARTIAL = re.compile(r"[0-9a-f]{32}\.delassus-part")
_DAY = 86400.0

# NOFOLLOW rejects a symbolic link, NONBLOCK prevents blocking on a named pipe, BINARY is for Windows.
_BINARY = getattr(os, "O_BINARY", 0)
_READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | _BINARY
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY

_File = tuple[float, int, Path]  # modification time (first, to sort by it), size, path

_warned: set[tuple[Path, str]] = set()  # path and problem of each warning of this process
_disabled: ContextVar[bool] = ContextVar("delassus_cache_disabled", default=False)
_written_since_scan: dict[Path, int] = {}  # bytes stored per folder since its size was last measured


class _Trouble(Exception):
    """A file or folder that cannot be used: the problem, its consequence, and what the user can do."""

    def __init__(self, path: Path, problem: str, remedy: str) -> None:
        super().__init__(path, problem, remedy)
        self.cause = (path, problem)

    def __str__(self) -> str:
        path, problem, remedy = self.args
        return f"{path} {problem}. {remedy}"


@contextmanager
def disable_cache() -> Iterator[None]:
    """Disable the cache in this thread or task, for any value of `DELASSUS_CACHE`."""
    token = _disabled.set(True)
    try:
        yield
    finally:
        _disabled.reset(token)


def directory() -> Path | None:
    """The folder of the cache, by `DELASSUS_CACHE` or the convention of the platform; None if the cache is disabled."""
    if _disabled.get():
        return None
    setting = os.environ.get(VARIABLE)
    if setting is not None and setting.strip().lower() in _OFF:
        return None
    location = _platform_folder() if setting is None else Path(setting)
    try:
        return location.expanduser().absolute()
    except (RuntimeError, OSError):  # no such user or no home; a relative name in a deleted working folder
        remedy = f"Compiled kernels are not cached. Set {VARIABLE} to an absolute folder, or to 'off'."
        _warn(_Trouble(location, "does not lead to any folder for the kernel cache", remedy))
        return None


def load(kind: str, key: str) -> bytes | None:
    """Return the payload stored under `kind` and `key`, or None if there is no trusted entry."""
    name = _file_name(kind, key)
    folder = directory()
    if folder is None:
        return None
    try:
        path = _resolve_trusted(folder) / name
        blob, modified = _read_trusted(path)
        payload = _unseal(kind, key, blob)
        if payload is None:
            _remove([path])
            remedy = "It is deleted, and its kernel is compiled again. If this recurs, check the disk."
            raise _Trouble(path, "is damaged, or is not the cache entry that its name says", remedy)
        if time.time() - modified > _DAY:  # eviction uses this time; a daily update is cheap
            with suppress(OSError):  # a read-only cache is still useful
                os.utime(path)
        return payload
    except FileNotFoundError:
        return None
    except _Trouble as trouble:
        _warn(trouble)
    except OSError as error:
        remedy = "Its kernel is compiled again. Delete the file, or make it readable."
        _warn(_Trouble(folder / name, f"cannot be read ({error.strerror})", remedy))
    return None


def has(kind: str, key: str) -> bool:
    """Whether there is an entry under `kind` and `key`; it is verified only when it is loaded."""
    name, folder = _file_name(kind, key), directory()
    try:
        return folder is not None and (folder / name).exists()
    except OSError:
        return False


def store(kind: str, key: str, payload: bytes) -> None:
    """Store `payload` under `kind` and `key`; readers see the old entry or the new one, never a mixture."""
    name = _file_name(kind, key)
    folder = directory()
    if folder is None:
        return
    try:
        home = _make_folder(folder)
        blob = _header(kind, key, payload) + payload
        _write(home / name, blob)
        _trim_now_and_then(home, len(blob))
    except _Trouble as trouble:
        _warn(trouble)
    except OSError as error:
        remedy = f"The kernel is not kept. Free space, make it writable, or set {VARIABLE} to another folder."
        _warn(_Trouble(folder, f"cannot be written ({error.strerror})", remedy))


def probe() -> None:
    """Store, load and remove an entry, with the warnings that a kernel would cause."""
    key, folder = secrets.token_hex(16), directory()
    store("probe", key, b"probe")
    load("probe", key)
    if folder is not None:
        _remove([folder / _file_name("probe", key)])


def usage() -> tuple[int, int]:
    """Return the number of entries and their total size [bytes]."""
    sizes = [size for _, size, _ in _files(directory(), _ENTRY)]
    return len(sizes), sum(sizes)


def clear() -> int:
    """Remove all entries, and no other files; return their number."""
    return _remove(path for _, _, path in _files(directory(), _ENTRY))


def _platform_folder() -> Path:
    """Return the per-user cache folder of this platform, with `~` for the home folder."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or "~/AppData/Local") / "delassus" / "cache"
    if sys.platform == "darwin":
        return Path("~/Library/Caches/delassus")
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))  # by the XDG specification, a relative path is ignored
    return (base if base.is_absolute() else Path("~/.cache")) / "delassus"


def _file_name(kind: str, key: str) -> str:
    """Return the file name of an entry, which never refers to another folder."""
    name = f"{key}.{kind}.delassus"
    if not _ENTRY.fullmatch(name):
        bounds = "the kind must be a word of 1 to 16 letters a-z, the key a digest of 1 to 128 digits 0-9a-f"
        raise ValueError(f"a cache entry has the kind {kind!r} and the key {key!r}; {bounds}.")
    return name


def _header(kind: str, key: str, payload: bytes) -> bytes:
    """Return the header of an entry; its length depends on kind and key only."""
    return f"{_MAGIC}\n{kind} {key} {hashlib.sha256(payload).hexdigest()}\n".encode()


def _unseal(kind: str, key: str, blob: bytes) -> bytes | None:
    """Return the payload in `blob`; None if the header does not agree with kind, key and payload."""
    size = len(_header(kind, key, b""))
    payload = blob[size:]
    return payload if blob[:size] == _header(kind, key, payload) else None


def _fault(status: os.stat_result) -> str | None:
    """Return the reason why another user can change this file or folder; None if there is none, or on Windows.

    A file must belong to this user, a folder to this user or root. A sticky folder such as /tmp may be writable by all:
    only the owner of a file in it can rename this file, and the file is checked separately.
    """
    if not hasattr(os, "geteuid"):
        return None
    folder = stat.S_ISDIR(status.st_mode)
    if status.st_uid != os.geteuid() and not (folder and status.st_uid == 0):
        return f"belongs to another user (number {status.st_uid})"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not (folder and status.st_mode & stat.S_ISVTX):
        return f"is writable by other users (mode {stat.S_IMODE(status.st_mode):o})"
    return None


def _resolve_trusted(folder: Path) -> Path:
    """Return `folder` without symbolic links; raises `_Trouble` if another user could change its content."""
    real = Path(os.path.realpath(folder))
    for path in (*reversed(real.parents), real):
        try:
            status = path.lstat()
            fault = _fault(status) if stat.S_ISDIR(status.st_mode) else "is not a folder"
        except PermissionError:
            fault = "cannot be examined by the current user"
        if fault:
            remedy = "The kernel cache in it is not used, and each kernel is compiled again. Change its permissions"
            remedy += f" (`chmod go-w`), or set {VARIABLE} to a folder that only you can write."
            raise _Trouble(path, fault, remedy)
    return real


def _make_folder(folder: Path) -> Path:
    """Return the trusted `folder`; it is created if it is missing, but only in trusted folders.

    Missing parents have mode 0o700, too: with the default mode and a umask of 002, they would not be trusted.
    """
    try:
        return _resolve_trusted(folder)
    except FileNotFoundError:
        if folder == folder.parent:  # a missing drive
            raise
    location = _make_folder(folder.parent) / folder.name
    location.mkdir(mode=0o700, exist_ok=True)
    return _resolve_trusted(location)  # in /tmp another user may have created it first


def _read_trusted(path: Path) -> tuple[bytes, float]:
    """Return the content and modification time of a file that only this user can have written."""
    descriptor = os.open(path, _READ)
    try:
        status = os.fstat(descriptor)  # of the open file, since the path may refer to another file later
        fault = _fault(status) if stat.S_ISREG(status.st_mode) else "is not a regular file"
        if fault:
            raise _Trouble(path, fault, "It is not used, and its kernel is compiled again. Delete it.")
        with os.fdopen(descriptor, "rb", buffering=0, closefd=False) as file:
            return file.read(), status.st_mtime
    finally:
        os.close(descriptor)


def _write(path: Path, blob: bytes) -> None:
    """Write a file atomically.

    The temporary name is chosen before the file exists (`tempfile.mkstemp` returns it afterwards), so that the file is
    removed after an interrupt at any moment. There is no fsync: after a power failure, the digest reveals an incomplete
    entry.
    """
    temporary = path.with_name(f"{secrets.token_hex(16)}.delassus-part")
    try:
        with os.fdopen(os.open(temporary, _CREATE, 0o600), "wb") as file:
            file.write(blob)
        temporary.replace(path)
    finally:
        _remove([temporary])


def _trim_now_and_then(folder: Path, size: int) -> None:
    """Evict entries at the first store, and whenever this process has stored another tenth of the limit.

    The remaining entries take at most nine tenths of the limit, so one process never exceeds it between scans.
    """
    total = _written_since_scan.get(folder, LIMIT) + size
    if total > LIMIT // 10:
        _remove(_surplus(_files(folder, _ENTRY), LIMIT - LIMIT // 10))
        abandoned = time.time() - _DAY  # left by a killed process; a newer one may belong to a store in progress
        _remove(path for modified, _, path in _files(folder, _PARTIAL) if modified < abandoned)
        total = 0
    _written_since_scan[folder] = total


def _surplus(files: list[_File], keep: int) -> list[Path]:
    """Return the least recently used files, such that the others take at most `keep` bytes."""
    newest_first = sorted(files, reverse=True)
    sizes_so_far = accumulate(size for _, size, _ in newest_first)
    return [path for (_, _, path), total in zip(newest_first, sizes_so_far, strict=True) if total > keep]


def _files(folder: Path | None, name: re.Pattern[str]) -> list[_File]:
    """Return the regular files in `folder` whose full name matches; none if it is missing or unreadable."""
    files: list[_File] = []
    with suppress(OSError):
        for path in folder.iterdir() if folder else ():
            if name.fullmatch(path.name):
                with suppress(FileNotFoundError):  # another process may evict it meanwhile
                    status = path.lstat()
                    if stat.S_ISREG(status.st_mode):
                        files.append((status.st_mtime, status.st_size, path))
    return files


def _remove(paths: Iterable[Path]) -> int:
    """Remove files as far as possible; return the number of removed files."""
    removed = 0
    for path in paths:
        with suppress(OSError):
            path.unlink()
            removed += 1
    return removed


def _warn(trouble: _Trouble) -> None:
    """Warn once per process about each problem of each path."""
    if trouble.cause not in _warned:
        _warned.add(trouble.cause)
        warn(str(trouble))
