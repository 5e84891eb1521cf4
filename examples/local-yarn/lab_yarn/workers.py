"""The machines of a lab: each is one NodeManager on an address of its own.

There is no background process. An order (create or delete) is first written
down, then carried out by `advance`, which every call runs under the lab's lock
and which can be killed anywhere: the next call goes on where it stopped.
"""

import os
import shutil
import signal
import socket
import time

from . import jvm, processes
from .files import locked, read_json, remove, tail, write_json

MAIN = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
HEAP_MB = 96
PORT = 8041
# A NodeManager tells YARN at once that it leaves, but needs up to 17 s to exit.
STOP_GRACE_SECONDS = 2

# Worker N is at address FIRST_WORKER + N.
FIRST_WORKER = 11
WORKERS_MAX = 100
GROUPS = {"primary": ("worker", FIRST_WORKER), "secondary": ("secondary", 131)}


class Refused(Exception):
    """An order that cannot be taken, in the protocol's words."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


def order_create(lab, operation, group, count, delay=None):
    """Take an order for new workers, or recognise one taken before."""
    if read_json(order_file(lab, operation)) is None:
        settings = read_json(lab.path("provider.json"))
        names = free_names(lab, settings["groups"][group], group, count)
        wait = settings["bootDelay"] if delay is None else delay
        order = {"method": "create", "group": group, "names": names, "bootAt": time.time() + wait, "delay": wait}
        write_json(order_file(lab, operation), {**order, "accepted": False})


def order_delete(lab, operation, group, names):
    """Take an order to delete workers by name; names that do not exist are gone already."""
    if read_json(order_file(lab, operation)) is None:
        order = {"method": "delete", "group": group, "names": names}
        write_json(order_file(lab, operation), {**order, "accepted": False})


def order_these(lab, operation, names):
    """Take an order for primary workers of these numbers, as a cloud would that names its machines itself."""
    order = {"method": "create", "group": "primary", "names": names, "bootAt": time.time(), "delay": 0}
    write_json(order_file(lab, operation), {**order, "accepted": False})


def free_names(lab, settings, group, count):
    """The lowest names that no machine has; one being deleted still holds its address."""
    prefix = GROUPS[group][0]
    taken = {worker["name"] for worker in records(lab) if worker["group"] == group}
    if len(taken) + count > settings["maxWorkers"]:
        raise Refused("QUOTA", f"{count} more workers would exceed the quota of "
                               f"{settings['maxWorkers']}: {len(taken)} exist in group {group}")
    candidates = (f"{prefix}-{index}" for index in range(settings["maxWorkers"]))
    return [name for name in candidates if name not in taken][:count]


def advance(lab, settings):
    """Bring every order as far as it can be brought now."""
    for name in sorted(os.listdir(lab.path("operations"))):
        order = read_json(lab.path("operations", name))
        if not order["accepted"]:
            accept(lab, settings, order)
            write_json(lab.path("operations", name), {**order, "accepted": True})
    for worker in records(lab):
        if "stoppingSince" in worker:
            continue_stop(lab, worker)
        elif worker["process"] is None:
            start(lab, settings, worker)


def accept(lab, settings, order):
    """Write an order's meaning into the records of its workers."""
    for name in order["names"]:
        known = read_json(record_file(lab, name))
        if order["method"] == "create" and known is None:
            save(lab, new_record(settings, order, name))
        elif order["method"] == "delete" and known and known["group"] == order["group"]:
            begin_stop(lab, known)


def new_record(settings, order, name):
    """A worker that is ordered, with no process yet."""
    number = int(name.rsplit("-", 1)[1])
    address = f"{settings['subnet']}.{GROUPS[order['group']][1] + number}"
    pattern = settings["workerHosts"] if order["group"] == "primary" else None
    return {"name": name, "group": order["group"], "address": address, "host": (pattern or address).format(number),
            "bootAt": order["bootAt"], "delay": order["delay"], "process": None, "up": False}


def start(lab, settings, worker):
    """Start a worker's NodeManager, or adopt it if we were killed right after starting it."""
    process = processes.with_role(lab, worker["name"])
    if process is None:
        boot = ["sh", "-c", 'sleep "$0"; exec "$@"', str(worker["delay"])] if worker["delay"] else []
        command = boot + node_manager(lab, settings, worker)
        process = processes.spawn(lab, worker["name"], command, log(lab, worker["name"]), jvm.environment(settings))
    save(lab, {**worker, "process": process})


def node_manager(lab, settings, worker):
    """The command line of a NodeManager with the resources of its group."""
    group = read_json(lab.path("provider.json"))["groups"][worker["group"]]
    name, host = worker["name"], worker["host"]
    properties = {
        "hostname": host,
        "bind-host": worker["address"],
        "address": f"{host}:{PORT}",
        "localizer.address": f"{host}:8040",
        "webapp.address": f"{host}:8042",
        "local-dirs": lab.path("workers", name, "local"),
        "log-dirs": lab.path("workers", name, "logs"),
        "resource.memory-mb": group["memoryMb"],
        "resource.cpu-vcores": group["vcores"],
        "resource-type.yarn.io/gpu": group["gpus"],
    }
    arguments = [word for key, value in properties.items() for word in ("-D", f"yarn.nodemanager.{key}={value}")]
    return jvm.command(lab, settings, HEAP_MB, name, MAIN, *arguments)


def state(lab, worker):
    """PROVISIONING, RUNNING, STOPPING or FAILED; that it once was up is remembered."""
    if "stoppingSince" in worker:
        return "STOPPING"
    if worker["process"] is None:
        return "PROVISIONING"
    if not processes.runs(worker["process"]):
        return "FAILED"
    if not worker["up"] and time.time() >= worker["bootAt"] and listens(worker["address"]):
        worker["up"] = True
        save(lab, worker)
    return "RUNNING" if worker["up"] else "PROVISIONING"


def listens(address):
    """Does a NodeManager serve? Loopback refuses at once, so this does not wait."""
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex((address, PORT)) == 0


def begin_stop(lab, worker):
    """Ask a NodeManager to end; the worker's containers go with its machine."""
    if "stoppingSince" not in worker:
        save(lab, {**worker, "stoppingSince": time.time()})
        signal_group(worker["process"], signal.SIGTERM)


def continue_stop(lab, worker):
    """After a moment of grace pull the plug; forget the worker when nothing of it is left."""
    home = lab.path("workers", worker["name"])
    process = worker["process"] or processes.with_role(lab, worker["name"])
    if processes.runs(process) and time.time() < worker["stoppingSince"] + STOP_GRACE_SECONDS:
        return
    signal_group(process, signal.SIGKILL)
    for container in processes.inside(home):
        processes.send(container)
    if processes.wait_until(lambda: not (processes.runs(process) or processes.inside(home)), 0.3, 0.02):
        remove(record_file(lab, worker["name"]))
        shutil.rmtree(home, ignore_errors=True)
        shutil.rmtree(lab.path("tmp", worker["name"]), ignore_errors=True)


def signal_group(process, number):
    """Signal a NodeManager and what it started in its own process group."""
    if processes.runs(process):
        processes.send(-process["pid"], number)


def crash(lab, host):
    """Kill the NodeManager of a host; its machine, and its containers, stay."""
    for worker in records(lab):
        process = worker["process"]
        if worker["host"] == host and processes.runs(process):
            signal_group(process, signal.SIGKILL)
            return processes.wait_until(lambda killed=process: not processes.runs(killed), 10, 0.02)
    return False


def progress(lab, operation):
    """How far an order is: (state, names that are up, message when it failed)."""
    order = read_json(order_file(lab, operation))
    if order is None:
        return None
    found = {worker["name"]: worker for worker in records(lab) if worker["name"] in order["names"]}
    if order["method"] == "delete":
        return ("RUNNING" if found else "DONE"), order["names"], None
    states = {name: state(lab, worker) for name, worker in found.items()}
    if "PROVISIONING" in states.values() or not order["accepted"]:
        return "RUNNING", [], None
    dead = [name for name in found if states[name] == "FAILED" and not found[name]["up"]]
    if dead:
        return "FAILED", [], f"{dead[0]} ended while it booted:\n{tail(log(lab, dead[0]), 5)}"
    return "DONE", order["names"], None


def settled(lab, settings, count):
    """Are there exactly so many workers, all of them up?"""
    with locked(lab.path("provider.lock")):
        advance(lab, settings)
        found = records(lab)
        return len(found) == count and all(state(lab, worker) == "RUNNING" for worker in found)


def records(lab):
    """All workers, in the order of their addresses."""
    folder = lab.path("workers")
    found = [read_json(os.path.join(folder, name)) for name in os.listdir(folder) if name.endswith(".json")]
    return sorted((worker for worker in found if worker), key=lambda worker: int(worker["address"].rsplit(".", 1)[1]))


def save(lab, worker):
    """Write a worker's record."""
    write_json(record_file(lab, worker["name"]), worker)


def record_file(lab, name):
    """Where a worker is written down."""
    return lab.path("workers", f"{name}.json")


def order_file(lab, operation):
    """Where an order is written down."""
    return lab.path("operations", f"{operation}.json")


def log(lab, name):
    """Where a worker's NodeManager writes."""
    return lab.path("logs", f"{name}.log")
