"""Gangs: submitting them, waiting for their end, and counting what they lost."""

import json
import os
import subprocess
import time

from . import jvm, manager, processes, rest
from .files import LabError

ENDED = ("FINISHED", "FAILED", "KILLED")
# A gang with this name, of this kind, with so many members; the defaults of `submit`.
SUBMITTED = "submitted"
SHAPE = ("workers", "worker_memory_mb", "worker_gpus", "ps", "ps_memory_mb", "am_memory_mb", "duration")


def submit(lab, options):
    """Submit gangs from one client JVM; their ids once YARN has accepted them."""
    settings = lab.settings
    words = [f"{key.replace('_', '-')}={getattr(options, key)}" for key in SHAPE]
    words += [f"name={options.name}", f"kind={options.kind}", f"gangs={options.gangs}",
              f"records={lab.path('launcher')}", f"logs={settings['logDir']}"]
    command = jvm.command(lab, settings, 128, "client", "GangLauncher", "submit", *words)
    environment = {**os.environ, **jvm.environment(settings),
                   processes.DIR_MARK: lab.dir, processes.ROLE_MARK: "client"}
    with open(lab.path("logs", "client.log"), "ab") as errors:
        result = subprocess.run(command, env=environment, cwd=lab.dir, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=errors, text=True, check=False)
    if result.returncode != 0:
        raise LabError(f"submitting failed; see {lab.path('logs', 'client.log')}.")
    identifiers = result.stdout.split()
    remember(lab, identifiers)
    return identifiers


def remember(lab, identifiers):
    """Note what was submitted: `wait` must not trust a restarted ResourceManager's list."""
    with open(lab.path(SUBMITTED), "a", encoding="utf-8") as file:
        file.writelines(f"{identifier}\n" for identifier in identifiers)


def submitted(lab):
    """All applications submitted so far."""
    try:
        with open(lab.path(SUBMITTED), encoding="utf-8") as file:
            return file.read().split()
    except FileNotFoundError:
        return []


def wait(lab, timeout, tell):
    """Tell of each application when it has ended; false when the time ran out first."""
    settings, missing = lab.settings, submitted(lab)
    end = time.monotonic() + timeout if timeout else None
    while True:
        known = listed(settings)
        for identifier in [one for one in missing if has_ended(known, one)]:
            tell(summary(lab, known, identifier))
            missing.remove(identifier)
        if not missing:
            return True
        if end and time.monotonic() > end:
            return False
        time.sleep(0.5)


def listed(settings):
    """The applications of the active ResourceManager by id; None while there is none."""
    host = manager.active(settings)
    try:
        return host and {one["id"]: one for one in rest.applications(host)}
    except OSError:
        return None


def has_ended(known, identifier):
    """Over, or forgotten by a ResourceManager that was restarted without recovery."""
    if known is None:
        return False
    return identifier not in known or known[identifier]["state"] in ENDED


def summary(lab, known, identifier):
    """One application in the words of `wait`."""
    found = known.get(identifier, {"name": "?", "finalStatus": "FORGOTTEN", "elapsedTime": 0})
    return {"id": identifier, "finalStatus": found["finalStatus"], "name": found["name"],
            "seconds": round(found["elapsedTime"] / 1000, 1), "lost": len(lost(lab, identifier)),
            "diagnostics": found.get("diagnostics", "").strip()}


def lost(lab, identifier=None):
    """The containers that application masters saw end otherwise than by themselves."""
    folder = lab.path("launcher")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    wanted = [name for name in names if name.endswith(".jsonl") and identifier in (None, name[:-6])]
    events = []
    for name in wanted:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            events += [json.loads(line) for line in file]
    return [event for event in events if event["event"] == "lost"]


def outcomes(lab):
    """What each application master last said of itself: SUCCEEDED, FAILED, or nothing."""
    found = {}
    for identifier in submitted(lab):
        try:
            with open(lab.path("launcher", f"{identifier}.jsonl"), encoding="utf-8") as file:
                events = [json.loads(line) for line in file]
        except FileNotFoundError:
            events = []
        found[identifier] = next((event["status"] for event in events if event["event"] == "ended"), None)
    return found
