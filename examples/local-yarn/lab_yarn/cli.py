"""The command line of `lab`."""

import argparse
import json
import signal
import sys
import uuid

from . import cluster, hadoop, jobs, manager, processes, workers
from .files import LabError, locked
from .lab import Lab


def main(arguments):
    """Run one command; a failure is one sentence on stderr and exit code 1."""
    # `up` cleans behind itself on any exception, so let a SIGTERM be one.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = parser().parse_args(arguments)
    try:
        return options.run(options) or 0
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def parser():
    """All commands and their options."""
    top = argparse.ArgumentParser(prog="lab", description="A real YARN on this machine.")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    fetch = commands.add_parser("fetch", help="get Hadoop's jars by Maven, once")
    fetch.set_defaults(run=lambda options: hadoop.fetch(options.hadoop_version))
    version_option(fetch)
    up_options(command(commands, "up", up, "start a ResourceManager and NodeManagers"))
    command(commands, "down", down, "end every process of the lab")
    submit_options(command(commands, "submit", submit, "submit gangs and print their ids"))
    waiting = command(commands, "wait", wait, "wait until all that was submitted has ended")
    waiting.add_argument("--timeout", type=float, metavar="S", help="give up after so many seconds")
    waiting.add_argument("--json", action="store_true", help="one JSON object per application")
    command(commands, "lost", lost, "count the containers that did not end by themselves")
    settle = command(commands, "settle", settle_down, "wait until there are so many workers, all running")
    settle.add_argument("--workers", type=int, required=True, metavar="N")
    settle.add_argument("--timeout", type=float, default=600, metavar="S")
    manager_options(commands)
    kill = command(commands, "nm-kill", nm_kill, "kill the NodeManager of a host")
    kill.add_argument("host", metavar="HOST")
    for name, run, text in (("worker-start", worker_start, "start primary workers of these numbers"),
                            ("worker-stop", worker_stop, "stop them, with all that runs there")):
        made = command(commands, name, run, text)
        made.add_argument("numbers", metavar="N", type=int, nargs="+")
    return top


def command(commands, name, run, text):
    """A command that works on a lab's folder."""
    made = commands.add_parser(name, help=text, description=text)
    made.add_argument("--dir", required=True, metavar="DIR", help="the lab's folder")
    made.set_defaults(run=run)
    return made


def version_option(to):
    """Which Hadoop."""
    to.add_argument("--hadoop-version", default=hadoop.DEFAULT_VERSION, metavar="V",
                    help="3.3.6 (default) or 3.4.3; others may work")


def number(to, name, default, text):
    """A whole number with a default."""
    to.add_argument(name, type=int, default=default, metavar="N", help=f"{text} (default {default})")


def up_options(to):
    """How large, and of which kind, the cluster is."""
    version_option(to)
    number(to, "--nodes", 2, "NodeManagers at the start")
    number(to, "--node-memory-mb", 12288, "memory of a node for containers")
    number(to, "--node-vcores", 8, "cores of a node")
    number(to, "--node-gpus", 1, "GPUs a node declares")
    number(to, "--max-workers", 100, "quota of the provider's primary group")
    number(to, "--secondary-max", 0, "quota of a secondary group; none when 0")
    to.add_argument("--boot-delay", type=float, default=0, metavar="S",
                    help="seconds that a machine of the provider boots (default 0)")
    to.add_argument("--worker-hosts", metavar="PATTERN",
                    help="what YARN calls primary worker {}: c-w-{}.c.p.internal (default: its address)")
    to.add_argument("--subnet", default="auto", metavar="127.X.Y", help="loopback /24 (default: a free one)")
    to.add_argument("--exclude-format", choices=("xml", "txt"), default="xml", help="form of the exclude file")
    to.add_argument("--recovery", action="store_true", help="applications survive a ResourceManager restart")
    to.add_argument("--ha", action="store_true", help="two ResourceManagers, failed over by `failover`")


def submit_options(to):
    """What a gang looks like; the defaults are the conference scene's."""
    to.add_argument("--name", required=True, help="the application's name, numbered if there are several gangs")
    to.add_argument("--kind", choices=("TensorFlow", "PyTorch"), default="TensorFlow", help="the framework, as a tag")
    number(to, "--gangs", 1, "gangs to submit")
    number(to, "--workers", 2, "workers of a gang")
    number(to, "--worker-memory-mb", 4096, "memory of a worker")
    number(to, "--worker-gpus", 1, "GPUs of a worker")
    number(to, "--ps", 1, "parameter servers of a gang")
    number(to, "--ps-memory-mb", 2048, "memory of a parameter server")
    number(to, "--am-memory-mb", 2048, "memory of the application master")
    number(to, "--duration", 45, "seconds that the workers run")


def manager_options(commands):
    """Commands about the ResourceManagers."""
    for name, run, text in (("rm-stop", rm_stop, "kill the ResourceManager"),
                            ("rm-start", rm_start, "start it again and wait until it answers")):
        made = command(commands, name, run, text)
        made.add_argument("--id", metavar="RM", help="rm1 or rm2 of an HA pair (default: all)")
    failover = command(commands, "failover", fail_over, "make one of an HA pair the active one")
    failover.add_argument("--id", required=True, metavar="RM", help="rm1 or rm2")


def up(options):
    """Print the settings of the new lab."""
    print(json.dumps(cluster.up(Lab(options.dir), options), indent=1))


def down(options):
    """End everything."""
    cluster.down(Lab(options.dir))


def submit(options):
    """Print an id per gang."""
    print("\n".join(jobs.submit(Lab(options.dir), options)), flush=True)


def wait(options):
    """Print a line per application; exit 1 when the time ran out."""
    def tell(one):
        words = [one["id"], one["finalStatus"], one["name"], f"{one['seconds']:g}s", f"lost={one['lost']}"]
        print(json.dumps(one) if options.json else "\t".join(words), flush=True)

    if not jobs.wait(Lab(options.dir), options.timeout, tell):
        raise LabError(f"not all applications had ended after {options.timeout:g} s.")


def lost(options):
    """Exit 1 when a container was killed or an application did not succeed."""
    lab = Lab(options.dir)
    events = jobs.lost(lab)
    outcomes = jobs.outcomes(lab)
    failed = [identifier for identifier, status in outcomes.items() if status != "SUCCEEDED"]
    for event in events:
        print(f"  {event['application']} lost {event['member']} on {event['node']} "
              f"(exit status {event['exitStatus']}): {event['diagnostics'].strip()}")
    for identifier in failed:
        print(f"  {identifier} did not succeed")
    print(f"{len(outcomes) - len(failed)} of {len(outcomes)} jobs succeeded, containers killed: {len(events)}")
    return 1 if events or failed else 0


def settle_down(options):
    """Exit 1 when it does not come to that in time."""
    lab = Lab(options.dir)
    settings = lab.settings
    if not processes.wait_until(lambda: workers.settled(lab, settings, options.workers), options.timeout, 0.5):
        raise LabError(f"there were not {options.workers} workers after {options.timeout:g} s.")


def rm_stop(options):
    """As a crash would."""
    lab = Lab(options.dir)
    manager.stop(lab, lab.settings, options.id)


def rm_start(options):
    """On the same address, with the same state store if there is one."""
    lab = Lab(options.dir)
    manager.start(lab, lab.settings, options.id)


def fail_over(options):
    """By hand, as `yarn rmadmin` does it."""
    lab = Lab(options.dir)
    manager.activate(lab, lab.settings, options.id)


def worker_start(options):
    """As a cloud would whose machines the lab's are."""
    order_workers(options, "create", workers.order_these)


def worker_stop(options):
    """Return when nothing of them is left."""
    names = order_workers(options, "delete", lambda *order: workers.order_delete(*order[:2], "primary", order[2]))
    lab = Lab(options.dir)

    def gone():
        with locked(lab.path("provider.lock")):
            workers.advance(lab, lab.settings)
            return not any(worker["name"] in names for worker in workers.records(lab))

    if not processes.wait_until(gone, 30, 0.1):
        raise LabError(f"not all of {', '.join(names)} had ended after 30 s.")


def order_workers(options, word, order):
    """Take an order by numbers, once each."""
    lab = Lab(options.dir)
    names = [f"worker-{number}" for number in options.numbers]
    with locked(lab.path("provider.lock")):
        order(lab, f"{word}-{uuid.uuid4()}", names)
        workers.advance(lab, lab.settings)
    return names


def nm_kill(options):
    """SIGKILL; the machine and its containers stay."""
    lab = Lab(options.dir)
    with locked(lab.path("provider.lock")):
        if not workers.crash(lab, options.host):
            raise LabError(f"no NodeManager runs on {options.host}.")
