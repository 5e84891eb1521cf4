"""How a JVM of the lab is called: small heaps, quick start."""

import os

from .hadoop import classes, jars, java_home

# One compiler tier and one collector thread: a lab has dozens of JVMs on few cores.
# Hadoop 3.3 and 3.4 need the opened package on Java 17.
FLAGS = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData",
         "--add-opens", "java.base/java.lang=ALL-UNNAMED"]


def command(lab, settings, heap_mb, name, main, *arguments):
    """The command line of one JVM, whose temporary files go to a folder named after it."""
    version = settings["hadoopVersion"]
    temporary = lab.path("tmp", name)
    os.makedirs(temporary, exist_ok=True)
    # Names of workers are known to the lab's own programs alone.
    names = [f"-Djdk.net.hosts.file={hosts_file(settings)}"] if settings["workerHosts"] else []
    classpath = f"{settings['confDir']}:{classes(version)}:{jars(version)}/*"
    return [os.path.join(java_home(), "bin", "java"), *FLAGS, f"-Xmx{heap_mb}m", *names,
            f"-Dlab.dir={temporary}", f"-Djava.io.tmpdir={temporary}", f"-Duser.home={lab.path('home')}",
            "-cp", classpath, main, *arguments]


def hosts_file(settings):
    """What the names of the workers stand for, as in /etc/hosts."""
    return os.path.join(settings["confDir"], "hosts")


def environment(settings):
    """What Hadoop's programs look for around them; containers need JAVA_HOME."""
    return {
        "JAVA_HOME": java_home(),
        "HADOOP_CONF_DIR": settings["confDir"],
        "HADOOP_USER_NAME": "yarn",
    }
