"""The `command` provider protocol, version 1, over the lab's workers.

One process per request: one JSON object on stdin, one on stdout, exit 0. See
docs/provider-command.md for the protocol itself.
"""

import json
import re
import sys

from . import faults, workers
from .files import LabError, locked, read_json
from .lab import Lab
from .workers import Refused

VERSION = 1
REQUEST_ID = re.compile(r"[A-Za-z0-9-]{1,64}")
# A NodeManager is registered about this long after its machine has booted.
YARN_START_SECONDS = 3


def main(arguments):
    """Answer the request on stdin."""
    if len(arguments) != 2 or arguments[0] != "--dir":
        print("usage: provider --dir DIR    (one request as JSON on stdin)", file=sys.stderr)
        return 2
    json.dump(answer(Lab(arguments[1]), sys.stdin.read()), sys.stdout)
    sys.stdout.write("\n")
    return 0


def answer(lab, text):
    """The answer to a request: every failure is an answer too."""
    try:
        request = parse(text)
        refusal = faults.before(lab, request["method"])
        if refusal:
            return {"error": refusal}
        answered = serve(lab, request)
        faults.after(lab, request["method"])
        return answered
    except Refused as refused:
        return {"error": {"kind": refused.kind, "message": str(refused)}}
    except LabError as error:
        return {"error": {"kind": "PERMANENT", "message": str(error)}}


def parse(text):
    """A request of a version and with a method that we know."""
    try:
        request = json.loads(text)
    except ValueError as error:
        raise Refused("PERMANENT", f"the request is not JSON: {error}") from error
    if not isinstance(request, dict) or request.get("version") != VERSION:
        raise Refused("PERMANENT", f"only version {VERSION} of the protocol is spoken here")
    if request.get("method") not in METHODS:
        raise Refused("PERMANENT", f"unknown method {request.get('method')!r}: one of {', '.join(METHODS)}")
    return request


def serve(lab, request):
    """Carry out a request under the lab's lock, going on with earlier orders first."""
    settings = lab.settings
    with locked(lab.path("provider.lock")):
        workers.advance(lab, settings)
        return METHODS[request["method"]](lab, settings, request)


def describe(lab, _settings, _request):
    """What machines there are, and of what kind new ones would be."""
    settings = read_json(lab.path("provider.json"))
    found = workers.records(lab)
    groups = {name: {"template": template(group, settings["bootDelay"]),
                     "instances": [instance(lab, worker) for worker in found if worker["group"] == name]}
              for name, group in settings["groups"].items()}
    return {"capabilities": {"deletesNamed": True, "overlaps": True}, "groups": groups}


def template(group, boot_delay):
    """The machine type of a group."""
    resources = {key: group[key] for key in ("memoryMb", "vcores", "gpus")}
    return {**resources, "bootTime": f"{boot_delay + YARN_START_SECONDS:g}s"}


def instance(lab, worker):
    """One machine."""
    return {"name": worker["name"], "host": worker["host"], "state": workers.state(lab, worker)}


def create(lab, settings, request):
    """Start machines; the same request again only repeats the answer."""
    count = request.get("count")
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise Refused("PERMANENT", "`count` must be a whole number of at least 1")
    operation = f"create-{request_id(request)}"
    workers.order_create(lab, operation, known_group(lab, request), count)
    return carry_out(lab, settings, operation, "create")


def delete(lab, settings, request):
    """Stop machines by name; a name that is gone is fine."""
    names = request.get("instances")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Refused("PERMANENT", "`instances` must be a list of names")
    operation = f"delete-{request_id(request)}"
    workers.order_delete(lab, operation, known_group(lab, request), names)
    return carry_out(lab, settings, operation, "delete")


def carry_out(lab, settings, operation, method):
    """Do what was ordered and name the operation."""
    faults.die(lab, "crashMidOrder", method)
    workers.advance(lab, settings)
    faults.die(lab, "crashAfterOrder", method)
    return {"operationId": operation}


def poll(lab, _settings, request):
    """How far an order is."""
    operation = request.get("operationId")
    found = REQUEST_ID.fullmatch(str(operation)) and workers.progress(lab, operation)
    if not found:
        raise Refused("NOT_FOUND", f"there is no operation {operation!r}")
    state, names, message = found
    if state == "FAILED":
        return {"state": state, "error": {"kind": "TRANSIENT", "message": message}}
    return {"state": state, "instances": names} if state == "DONE" else {"state": state}


def request_id(request):
    """The caller's name of the order, which makes it safe to send twice."""
    found = request.get("requestId")
    if not isinstance(found, str) or not REQUEST_ID.fullmatch(found) or len(found) > 50:
        raise Refused("PERMANENT", "`requestId` must be 1 to 50 letters, digits and dashes")
    return found


def known_group(lab, request):
    """The group of an order, if the lab has it."""
    group = request.get("group")
    if group not in read_json(lab.path("provider.json"))["groups"]:
        raise Refused("NOT_FOUND", f"there is no group {group!r}")
    return group


METHODS = {"describe": describe, "create": create, "delete": delete, "poll": poll}
