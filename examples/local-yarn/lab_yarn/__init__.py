"""A real YARN on one machine, for the example, the provider and the tests.

Every ResourceManager and NodeManager is a JVM of its own on a loopback /24 of
its own, so several labs can run side by side. Where things live:

files          atomic JSON files, locks, and `LabError`, the sentence for people
hadoop         jars by Maven and the compiled launcher, cached in the build folder
lab            one lab's folder: its settings and its paths
subnet         a free 127.x.y.0/24
conf           the Hadoop configuration files
processes      starting, finding and ending what belongs to a lab
rest           the few REST calls the lab itself makes
manager        the ResourceManager: start, stop, fail over
workers        the machines: a NodeManager each, created and deleted in groups
faults         misbehaviour on order, for tests of the provider's caller
provider       the `command` provider protocol over `workers`
jobs           gangs: submitted, awaited, and what they lost
cluster        `up` and `down`
cli            the command line of `lab`
"""
