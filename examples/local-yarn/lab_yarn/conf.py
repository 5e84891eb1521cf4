"""The Hadoop configuration of a lab: one folder for managers, workers and clients."""

import socket

from .files import write_text
from .hadoop import jars
from .jvm import hosts_file
from .workers import FIRST_WORKER, WORKERS_MAX

LOG4J = """\
log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
"""

EMPTY_EXCLUDES = {"xml": '<?xml version="1.0"?>\n<hosts>\n</hosts>\n', "txt": ""}


def write(lab, settings):
    """Write all files, the exclude file too: a ResourceManager needs it at its start."""
    conf = settings["confDir"]
    write_xml(f"{conf}/core-site.xml", core())
    write_xml(f"{conf}/yarn-site.xml", yarn(lab, settings))
    write_xml(f"{conf}/capacity-scheduler.xml", scheduler())
    write_text(f"{conf}/log4j.properties", LOG4J)
    if settings["workerHosts"]:
        write_text(hosts_file(settings), names(settings))
    exclude = settings["excludeFile"]
    write_text(exclude, EMPTY_EXCLUDES["xml" if exclude.endswith(".xml") else "txt"])


def names(settings):
    """Addresses and names of all workers that there may be, and of this machine: Java asks nobody else.

    Hadoop asks for a full name with a dot at its end, and goes on for minutes without an answer.
    """
    hosts = [("127.0.0.1", f"localhost {socket.gethostname()}")]
    for number in range(WORKERS_MAX):
        name = settings["workerHosts"].format(number)
        hosts.append((f"{settings['subnet']}.{FIRST_WORKER + number}", f"{name} {name}."))
    return "".join(f"{address} {names_of_it}\n" for address, names_of_it in hosts)


def core():
    """No HDFS: files are local, and each JVM has its own temporary folder."""
    return {
        "fs.defaultFS": "file:///",
        "hadoop.tmp.dir": "${lab.dir}/tmp",
        # Loopback addresses beyond 127.0.0.1 have no name that could be looked up.
        "hadoop.security.token.service.use_ip": "false",
    }


def yarn(lab, settings):
    """ResourceManager, NodeManagers and clients read the same file."""
    site = {
        "yarn.resourcemanager.nodes.exclude-path": settings["excludeFile"],
        "yarn.resource-types": "yarn.io/gpu",
        "yarn.scheduler.minimum-allocation-mb": 128,
        "yarn.scheduler.maximum-allocation-mb": 65536,
        "yarn.scheduler.maximum-allocation-vcores": 64,
        "yarn.nm.liveness-monitor.expiry-interval-ms": 10000,
        "yarn.resourcemanager.nm.liveness-monitor.interval-ms": 1000,
        "yarn.resourcemanager.connect.retry-interval.ms": 1000,
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": 100,
        # Disks of a laptop can be fuller than a cluster's; the machine's own watermark is enough.
        "yarn.nodemanager.disk-health-checker.min-free-space-per-disk-mb": 0,
        # The folder first: without it application masters ask 0.0.0.0 for work.
        "yarn.application.classpath": f"{settings['confDir']},{jars(settings['hadoopVersion'])}/*",
        # By default in a folder of the machine that all labs would share, and two starting at once damage.
        "yarn.node-attribute.fs-store.root-dir": f"file://{lab.path('rm-state', 'attributes')}",
        "yarn.node-labels.fs-store.root-dir": f"file://{lab.path('rm-state', 'labels')}",
        "yarn.resourcemanager.recovery.enabled": str(settings["recovery"]).lower(),
    }
    site.update(addresses(settings))
    if settings["recovery"]:
        site.update(recovery(lab))
    return site


def addresses(settings):
    """One ResourceManager, or two that are failed over by hand."""
    managers = settings["resourceManagers"]
    if not settings["ha"]:
        host = managers[0]["host"]
        return {"yarn.resourcemanager.hostname": host, "yarn.resourcemanager.bind-host": host}
    site = {
        "yarn.resourcemanager.ha.enabled": "true",
        "yarn.resourcemanager.ha.automatic-failover.enabled": "false",
        "yarn.resourcemanager.cluster-id": "lab",
        "yarn.resourcemanager.ha.rm-ids": ",".join(manager["id"] for manager in managers),
    }
    for manager in managers:
        site[f"yarn.resourcemanager.hostname.{manager['id']}"] = manager["host"]
        site[f"yarn.resourcemanager.webapp.address.{manager['id']}"] = f"{manager['host']}:8088"
    return site


def recovery(lab):
    """Work-preserving restart: applications survive a ResourceManager's death."""
    return {
        "yarn.resourcemanager.work-preserving-recovery.enabled": "true",
        "yarn.resourcemanager.store.class":
            "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore",
        "yarn.resourcemanager.fs.state-store.uri": f"file://{lab.path('rm-state', 'store')}",
    }


def scheduler():
    """One queue, first come first served, which counts memory, cores and GPUs."""
    prefix = "yarn.scheduler.capacity"
    return {
        f"{prefix}.root.queues": "default",
        f"{prefix}.root.default.capacity": 100,
        f"{prefix}.root.default.ordering-policy": "fifo",
        f"{prefix}.maximum-am-resource-percent": "1.0",
        f"{prefix}.resource-calculator":
            "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
    }


def write_xml(path, properties):
    """Hadoop's configuration format."""
    rows = [f" <property><name>{name}</name><value>{escape(value)}</value></property>"
            for name, value in properties.items()]
    write_text(path, "\n".join(['<?xml version="1.0"?>', "<configuration>", *rows, "</configuration>", ""]))


def escape(value):
    """Folders may have any name."""
    return str(value).replace("&", "&amp;").replace("<", "&lt;")
