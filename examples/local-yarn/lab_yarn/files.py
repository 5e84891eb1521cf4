"""Files that survive a crash at any moment, and locks that end with their holder."""

import contextlib
import fcntl
import json
import os


class LabError(Exception):
    """A failure told in one sentence; the command line prints it without a traceback."""


def write_text(path, text):
    """Replace a file whole: a reader sees the old text or the new, never half of one."""
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(temporary, path)


def write_json(path, value):
    """Replace a file by a JSON document."""
    write_text(path, json.dumps(value, indent=1) + "\n")


def read_json(path, default=None):
    """Read a JSON document; a file that is not there is the default."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return default


def remove(path):
    """Remove a file that may be gone already."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


@contextlib.contextmanager
def locked(path):
    """Hold an exclusive lock; the kernel gives it back when its holder dies."""
    with open(path, "a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def tail(path, lines=15):
    """The end of a log, for an error message."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return "".join(file.readlines()[-lines:]).rstrip()
    except FileNotFoundError:
        return "(no log)"
