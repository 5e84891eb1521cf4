"""One lab's folder: where everything lies, and the settings it was brought up with."""

import os

from .files import LabError, read_json, write_json

# YARN's ports on the ResourceManager's own loopback address.
PORTS = {"scheduler": 8030, "tracker": 8031, "client": 8032, "admin": 8033, "web": 8088}


class Lab:
    """The folder given by --dir. The real path: processes are found by it later."""

    def __init__(self, folder):
        self.dir = os.path.realpath(folder)

    def path(self, *names):
        """A path inside the lab."""
        return os.path.join(self.dir, *names)

    @property
    def settings(self):
        """What `up` wrote, before it started anything."""
        found = read_json(self.path("lab.json"))
        if found is None:
            raise LabError(f"there is no lab in {self.dir}: bring it up with `lab up --dir {self.dir}`.")
        return found

    def save(self, settings):
        """Write the settings."""
        write_json(self.path("lab.json"), settings)

    def make_folders(self):
        """Everything that the lab's files go into."""
        for name in ("conf", "logs", "pids", "workers", "operations", "launcher", "home"):
            os.makedirs(self.path(name), exist_ok=True)

    @property
    def closing(self):
        """The file that forbids new processes while `down` is at work."""
        return self.path("closing")


def describe(lab, options, subnet, exclude):
    """The settings of a new lab: the document that `up` prints."""
    managers = [{"id": "rm1", "host": f"{subnet}.10"}]
    if options.ha:
        managers.append({"id": "rm2", "host": f"{subnet}.9"})
    for manager in managers:
        manager["url"] = f"http://{manager['host']}:{PORTS['web']}"
        manager["admin"] = f"{manager['host']}:{PORTS['admin']}"
    return {
        "dir": lab.dir,
        "rmUrl": managers[0]["url"],
        "rmAdmin": managers[0]["admin"],
        "resourceManagers": managers,
        "ha": options.ha,
        "recovery": options.recovery,
        "excludeFile": exclude,
        "confDir": lab.path("conf"),
        "logDir": lab.path("logs"),
        "subnet": subnet,
        "hadoopVersion": options.hadoop_version,
        "nodes": options.nodes,
        # What YARN calls worker N, with {} for the number; null: by its address.
        "workerHosts": options.worker_hosts,
    }
