"""Hadoop's jars from Maven and the compiled launcher, once per version, in a build folder."""

import hashlib
import os
import shutil
import subprocess
import sys
import threading
import time

from .files import LabError, locked, remove, tail, write_text

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
POM = os.path.join(HERE, "pom.xml")
LAUNCHER = os.path.join(HERE, "GangLauncher.java")
DEFAULT_VERSION = "3.3.6"
PROGRESS_SECONDS = 3


def build_folder():
    """Where jars are kept: shared by all labs of this checkout."""
    return os.environ.get("YARN_LAB_BUILD") or os.path.join(REPOSITORY, "build")


def tool(name, package):
    """The path of a program, or one sentence naming the package that has it."""
    found = shutil.which(name)
    if not found:
        raise LabError(f"`{name}` is not installed: install the Debian package `{package}`.")
    return found


def java_home():
    """The JDK in use; containers and NodeManagers need it in their environment."""
    home = os.environ.get("JAVA_HOME")
    if home and os.access(os.path.join(home, "bin", "javac"), os.X_OK):
        return home
    tool("java", "openjdk-17-jdk-headless")
    javac = tool("javac", "openjdk-17-jdk-headless")
    return os.path.dirname(os.path.dirname(os.path.realpath(javac)))


def jars(version):
    """The folder with the jars of one Hadoop version."""
    return os.path.join(build_folder(), f"hadoop-{version}", "lib")


def classes(version):
    """The folder with the launcher compiled from its present source."""
    name = f"launcher-{digest(LAUNCHER)[:16]}"
    return os.path.join(build_folder(), f"hadoop-{version}", name)


def digest(path, *more):
    """Identify a file's content together with a few words."""
    with open(path, "rb") as file:
        sum_ = hashlib.sha256(file.read())
    for word in more:
        sum_.update(b"\0" + word.encode())
    return sum_.hexdigest()


def fetch(version=DEFAULT_VERSION):
    """Have jars and launcher ready; quick when they are."""
    java_home()
    build = build_folder()
    os.makedirs(build, exist_ok=True)
    with locked(os.path.join(build, "hadoop.lock")) as lock:
        fetch_jars(version, lock)
        compile_launcher(version)


def fetch_jars(version, lock):
    """Resolve the jars unless the stamp says that this pom's are there."""
    target = jars(version)
    stamp = os.path.join(os.path.dirname(target), "lib.stamp")
    wanted = digest(POM, version)
    if os.path.isdir(target) and stamped(stamp) == wanted:
        return
    temporary = f"{target}.tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    os.makedirs(temporary)
    resolve(version, temporary, lock)
    remove(stamp)
    shutil.rmtree(target, ignore_errors=True)
    os.rename(temporary, target)
    write_text(stamp, wanted)


def stamped(stamp):
    """What the jars on disk were made from."""
    try:
        with open(stamp, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None


def resolve(version, folder, lock):
    """Run Maven. Where artifacts come from is Maven's own configuration.

    Maven shares the lock: should we be killed, the next one waits until it has ended.
    """
    command = [tool("mvn", "maven"), "-B", "-f", POM, f"-Dhadoop.version={version}",
               "dependency:copy-dependencies", f"-DoutputDirectory={folder}",
               "-DincludeScope=runtime"]
    log = os.path.join(os.path.dirname(folder), "maven.log")
    started = time.monotonic()
    say(f"fetching the jars of Hadoop {version} with Maven (about 80 MB, once)")
    with open(log, "w", encoding="utf-8") as out:
        maven = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[lock.fileno()],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            follow(maven, out, started)
        finally:
            maven.kill()
            maven.wait()
    count = len(os.listdir(folder))
    if maven.returncode != 0 or count == 0:
        raise LabError(f"Maven could not resolve Hadoop {version}; its log, {log}, ends with:\n{tail(log)}")
    say(f"{count} jars of Hadoop {version} after {time.monotonic() - started:.0f} s")


def follow(maven, out, started):
    """Copy Maven's output to a log and say every few seconds how far it is."""
    seen = {"jars": 0}
    ended = threading.Event()
    reporter = threading.Thread(target=report, args=(seen, ended, started), daemon=True)
    reporter.start()
    for line in maven.stdout:
        out.write(line)
        if "Downloaded from" in line and ".jar" in line:
            seen["jars"] += 1
    maven.wait()
    ended.set()
    reporter.join()


def report(seen, ended, started):
    """A line every few seconds, so that nobody thinks it hangs."""
    while not ended.wait(PROGRESS_SECONDS):
        say(f"  {time.monotonic() - started:.0f} s, {seen['jars']} jars downloaded so far")


def compile_launcher(version):
    """Compile the launcher against this version's jars unless it is there."""
    target = classes(version)
    if os.path.isdir(target):
        return
    temporary = f"{target}.tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    os.makedirs(temporary)
    javac = os.path.join(java_home(), "bin", "javac")
    command = [javac, "-nowarn", "-proc:none", "--release", "11", "-cp", f"{jars(version)}/*",
               "-d", temporary, LAUNCHER]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise LabError(f"javac refused {LAUNCHER}:\n{result.stdout}{result.stderr}")
    os.rename(temporary, target)


def say(line):
    """Progress goes to stderr: stdout belongs to the answer."""
    print(line, file=sys.stderr, flush=True)
