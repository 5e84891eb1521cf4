"""Starting, finding and ending the processes of a lab.

A process belongs to a lab when its environment carries YARN_LAB_DIR with the
lab's folder, or when it works in the folder of one of the lab's workers:
containers are given an environment of their own by YARN. So whatever is left
is found even if nobody lived to write down its number. Nothing is ever ended by name.

Once started, a process is known by its number and its time of birth: numbers are
used again, and the environment cannot be read for a moment while a program begins.
"""

import contextlib
import os
import signal
import time

from .files import LabError

DIR_MARK = "YARN_LAB_DIR"
ROLE_MARK = "YARN_LAB_ROLE"


def spawn(lab, role, command, log, environment):
    """Start a detached process in a session of its own and return what it is known by."""
    import subprocess  # slow to import, and the provider seldom starts anything

    if os.path.exists(lab.closing):
        raise LabError(f"the lab in {lab.dir} is being taken down.")
    marked = {**os.environ, **environment, DIR_MARK: lab.dir, ROLE_MARK: role}
    with open(log, "ab") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                   cwd=lab.dir, env=marked, start_new_session=True)
    # Its exit is seen in /proc; we are not going to wait for it.
    process.returncode = 0
    return identity(process.pid)


def stat(pid):
    """The kernel's line about a process, from its state on; empty when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def identity(pid):
    """A process's number and time of birth."""
    fields = stat(pid)
    return {"pid": pid, "born": fields[19] if fields else "gone"}


def alive(pid):
    """Is it running? A zombie, which only its parent can remove, is not."""
    fields = stat(pid)
    return bool(fields) and fields[0] not in ("Z", "X")


def runs(process):
    """Is this still the process that we started?"""
    return process is not None and alive(process["pid"]) and identity(process["pid"]) == process


def marks(pid):
    """The lab's marks in a process's environment; nothing for a stranger's process."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            pairs = [entry.split(b"=", 1) for entry in file.read().split(b"\0") if b"=" in entry]
    except OSError:
        return {}
    return {os.fsdecode(key): os.fsdecode(value) for key, value in pairs if key.startswith(b"YARN_LAB_")}


def folder(pid):
    """Where a process works."""
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def with_role(lab, role):
    """A process that was started in a role, if nobody lived to write it down."""
    wanted = {DIR_MARK: lab.dir, ROLE_MARK: role}
    return next((identity(pid) for pid in pids() if wanted.items() <= marks(pid).items() and alive(pid)), None)


def inside(path):
    """Every living process that works below a folder: the containers of a worker."""
    prefix = path.rstrip("/") + "/"
    return [pid for pid in pids() if folder(pid).startswith(prefix) and alive(pid)]


def of_lab(lab):
    """Every living process of a lab, except the one that asks and its ancestors."""
    spared = ancestors()
    workers = lab.path("workers") + "/"
    return [pid for pid in pids() if pid not in spared and alive(pid)
            and (marks(pid).get(DIR_MARK) == lab.dir or folder(pid).startswith(workers))]


def pids():
    """All process numbers of the machine."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def ancestors():
    """Ourselves, our parent, and so on: a shell that calls `down` must survive it."""
    found, pid = set(), os.getpid()
    while pid > 0 and pid not in found:
        found.add(pid)
        pid = int((stat(pid) or [None, 0])[1])
    return found


def send(pid, number=signal.SIGKILL):
    """Signal a process that may be gone already."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def wait_until(condition, seconds, pause=0.1):
    """Poll a condition; true when it came in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(pause)
    return True
