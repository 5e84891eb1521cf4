"""`up` and `down`: a whole cluster, from nothing and back to nothing."""

import contextlib
import os
import shutil
import time

from . import conf, hadoop, manager, processes, rest, subnet, workers
from .files import LabError, locked, read_json, remove, write_json, write_text
from .lab import describe

NODES_SECONDS = 60
MARKER = ".yarn-lab"
FRESH = ("workers", "operations", "launcher", "pids", "tmp", "rm-state", "conf", "logs")


def up(lab, options):
    """Bring a cluster up; whatever stops it on the way, nothing stays behind."""
    hadoop.fetch(options.hadoop_version)
    os.makedirs(lab.dir, exist_ok=True)
    refuse_strangers_folder(lab)
    if processes.of_lab(lab):
        raise LabError(f"processes of a lab are running in {lab.dir}: `lab down --dir {lab.dir}` first.")
    try:
        settings = prepare(lab, options)
        manager.start(lab, settings)
        if options.ha:
            manager.activate(lab, settings, "rm1")
        first_workers(lab, settings, options)
        return settings
    except BaseException:
        down(lab)
        raise


def refuse_strangers_folder(lab):
    """Only an empty folder or an earlier lab's is taken: `up` clears what it finds there."""
    found = os.listdir(lab.dir)
    if found and MARKER not in found:
        raise LabError(f"{lab.dir} is neither empty nor the folder of a lab.")
    write_text(lab.path(MARKER), "")


def prepare(lab, options):
    """Folders, a subnet, settings, configuration: all that must be there before a process is."""
    for name in FRESH:
        shutil.rmtree(lab.path(name), ignore_errors=True)
    for name in ("closing", "submitted", "provider-faults.json", "exclude.xml", "exclude.txt"):
        remove(lab.path(name))
    lab.make_folders()
    network = subnet.choose(options.subnet, lab)
    settings = describe(lab, options, network, lab.path(f"exclude.{options.exclude_format}"))
    lab.save(settings)
    write_json(lab.path("provider.json"), provider_settings(options))
    conf.write(lab, settings)
    return settings


def provider_settings(options):
    """What machines the provider makes; tests and demos may change the file."""
    template = {"memoryMb": options.node_memory_mb, "vcores": options.node_vcores, "gpus": options.node_gpus}
    groups = {"primary": {**template, "maxWorkers": options.max_workers}}
    if options.secondary_max:
        groups["secondary"] = {**template, "maxWorkers": options.secondary_max}
    return {"bootDelay": options.boot_delay, "groups": groups}


def first_workers(lab, settings, options):
    """Order the first workers as the provider would, and wait until YARN lists them."""
    if options.nodes:
        with locked(lab.path("provider.lock")):
            workers.order_create(lab, "create-up", "primary", options.nodes, delay=0)
            workers.advance(lab, settings)
    await_nodes(lab, settings, options.nodes)


def await_nodes(lab, settings, count):
    """Wait until so many nodes are RUNNING."""
    end = time.monotonic() + NODES_SECONDS
    host = manager.active(settings)
    while sum(node["state"] == "RUNNING" for node in rest.nodes(host)) < count:
        state, _, message = workers.progress(lab, "create-up")
        if state == "FAILED":
            raise LabError(message)
        if time.monotonic() > end:
            raise LabError(f"{count} nodes were not RUNNING within {NODES_SECONDS} s: see {settings['logDir']}.")
        time.sleep(0.1)


def down(lab):
    """End every process of the lab, and return when none is left. Works on any half of one."""
    if not os.path.isdir(lab.dir):
        return
    write_text(lab.closing, "")
    settings = read_json(lab.path("lab.json"))
    if settings:
        with contextlib.suppress(OSError):
            end_applications(settings)
    end_processes(lab)
    subnet.release(lab)
    remove(lab.path("lab.json"))


def end_applications(settings):
    """Have YARN end its containers itself: they do not die with their NodeManager."""
    host = manager.active(settings)
    open_ones = [one["id"] for one in unfinished(host)] if host else []
    for identifier in open_ones:
        rest.kill_application(host, identifier)
    if open_ones:
        processes.wait_until(lambda: not unfinished(host), 5)


def unfinished(host):
    """The applications that still hold something."""
    return [one for one in rest.applications(host) if one["state"] not in ("FINISHED", "FAILED", "KILLED")]


def end_processes(lab):
    """Kill until two looks in a row find nothing: a process may start another meanwhile."""
    clean = 0
    while clean < 2:
        left = processes.of_lab(lab)
        for pid in left:
            processes.send(pid)
        clean = 0 if left else clean + 1
        time.sleep(0.05)
