"""A loopback /24 that no other lab of this machine uses."""

import os
import random
import socket
import tempfile

from .files import LabError, locked, read_json, remove, write_json
from .lab import PORTS

TRIES = 200


def choose(wanted, lab):
    """Reserve the wanted subnet, or a free one when it is `auto`."""
    if wanted != "auto":
        if not reserve(wanted, lab):
            raise LabError(f"the subnet {wanted} is in use by another lab or program.")
        return wanted
    for _ in range(TRIES):
        # Not 127.0: the machine's own name is there (127.0.1.1 on Debian).
        subnet = f"127.{random.randint(1, 250)}.{random.randint(1, 250)}"
        if reserve(subnet, lab):
            return subnet
    raise LabError("no free loopback subnet was found in 127.0.0.0/8.")


def reserve(subnet, lab):
    """Take a subnet if no living lab holds it and its addresses can be bound."""
    with locked(os.path.join(registry(), "lock")):
        holder = read_json(entry(subnet))
        if holder and holder["dir"] != lab.dir and os.path.exists(os.path.join(holder["dir"], "lab.json")):
            return False
        if not bindable(subnet):
            return False
        write_json(entry(subnet), {"dir": lab.dir})
        return True


def release(lab):
    """Give back every subnet that is ours; an interrupted `up` may not have noted which."""
    with locked(os.path.join(registry(), "lock")):
        for name in os.listdir(registry()):
            path = os.path.join(registry(), name)
            if name.endswith(".json") and (read_json(path) or {}).get("dir") == lab.dir:
                remove(path)


def registry():
    """The folder that all labs of one user share."""
    folder = os.path.join(tempfile.gettempdir(), f"yarn-lab-subnets-{os.getuid()}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return folder


def entry(subnet):
    """The file that says who holds a subnet."""
    return os.path.join(registry(), f"{subnet}.json")


def bindable(subnet):
    """Can the addresses of the ResourceManagers and of the first worker be bound?"""
    probes = [(f"{subnet}.{last}", port) for last in (9, 10) for port in PORTS.values()]
    probes += [(f"{subnet}.11", 8041), (f"{subnet}.11", 8042)]
    return all(can_bind(host, port) for host, port in probes)


def can_bind(host, port):
    """Try one address as a JVM would."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
