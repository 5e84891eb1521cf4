"""The ResourceManager, or both of an HA pair."""

import subprocess
import time

from . import jvm, processes, rest
from .files import LabError, read_json, tail, write_json

MAIN = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"
ADMIN = "org.apache.hadoop.yarn.client.cli.RMAdminCLI"
HEAP_MB = 256
START_SECONDS = 60


def start(lab, settings, only=None):
    """Start the ResourceManagers that do not run, and wait until they answer."""
    started = [manager for manager in chosen(settings, only) if not running(lab, manager)]
    for manager in started:
        spawn(lab, settings, manager)
    goal = "STANDBY" if settings["ha"] else "ACTIVE"
    for manager in started:
        await_state(lab, manager, goal)


def spawn(lab, settings, manager):
    """Start one ResourceManager; its log is kept over restarts."""
    identity = ["-D", f"yarn.resourcemanager.ha.id={manager['id']}"] if settings["ha"] else []
    command = jvm.command(lab, settings, HEAP_MB, manager["id"], MAIN, *identity)
    process = processes.spawn(lab, manager["id"], command, log(lab, manager), jvm.environment(settings))
    write_json(pid_file(lab, manager), process)


def await_state(lab, manager, goal):
    """Wait for an HA state; a ResourceManager that dies first is shown with its log."""
    end = time.monotonic() + START_SECONDS
    while rest.state(manager["host"]) != goal:
        if not running(lab, manager):
            raise LabError(f"the ResourceManager ended while starting; {log(lab, manager)} ends with:\n"
                           + tail(log(lab, manager)))
        if time.monotonic() > end:
            raise LabError(f"the ResourceManager was not {goal} within {START_SECONDS} s: see {log(lab, manager)}.")
        time.sleep(0.1)


def stop(lab, settings, only=None):
    """Kill ResourceManagers as a crash would, and return when they are gone."""
    for manager in chosen(settings, only):
        process = running(lab, manager)
        if process:
            processes.send(process["pid"])
            processes.wait_until(lambda killed=process: not processes.runs(killed), 10, 0.02)


def activate(lab, settings, identifier):
    """Make one of an HA pair the active one, the other a standby first."""
    for manager in settings["resourceManagers"]:
        if manager["id"] != identifier and rest.state(manager["host"]) == "ACTIVE":
            admin(lab, settings, "-transitionToStandby", manager["id"])
    admin(lab, settings, "-transitionToActive", identifier)
    for manager in chosen(settings, identifier):
        await_state(lab, manager, "ACTIVE")


def admin(lab, settings, *arguments):
    """Hadoop's own administration command."""
    command = jvm.command(lab, settings, 64, "admin", ADMIN, *arguments)
    environment = {**jvm.environment(settings), processes.DIR_MARK: lab.dir}
    result = subprocess.run(command, env=environment, cwd=lab.dir, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise LabError(f"rmadmin {' '.join(arguments)} failed:\n{result.stderr.strip()}")


def active(settings):
    """The host of the ResourceManager that is in charge, None when there is none."""
    hosts = [manager["host"] for manager in settings["resourceManagers"]]
    return next((host for host in hosts if rest.state(host) == "ACTIVE"), None)


def chosen(settings, only):
    """All ResourceManagers, or the one named."""
    found = [manager for manager in settings["resourceManagers"] if only in (None, manager["id"])]
    if not found:
        raise LabError(f"there is no ResourceManager `{only}` in this lab.")
    return found


def running(lab, manager):
    """The process of a running ResourceManager, else None."""
    known = read_json(pid_file(lab, manager))
    return known if processes.runs(known) else processes.with_role(lab, manager["id"])


def pid_file(lab, manager):
    """Where a ResourceManager's process is written down."""
    return lab.path("pids", f"{manager['id']}.json")


def log(lab, manager):
    """Where a ResourceManager writes."""
    return lab.path("logs", f"{manager['id']}.log")
