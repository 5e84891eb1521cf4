"""A provider command that keeps its machines in a file: two workers at first. Usage: scripted.py FOLDER TROUBLE OVERLAPS

An order is under way until it has been polled twice; then its machines run, or are gone.
"""

import json
import os
import sys
import time

folder, trouble, overlaps = sys.argv[1], sys.argv[2], sys.argv[3] == "overlaps"
kept = os.path.join(folder, "state.json")
FAILURES = {
    "Quota": {"kind": "QUOTA", "message": "no more machines than two"},
    "Throttled": {"kind": "THROTTLED", "message": "too many requests", "retryAfter": "7s"},
    "Denied": {"kind": "DENIED", "message": "we may not"},
}


def load():
    if os.path.exists(kept):
        with open(kept, encoding="utf-8") as file:
            return json.load(file)
    machines = {f"worker-{number}": "RUNNING" for number in range(2)}
    return {"machines": machines, "operations": {}, "requests": {}, "made": 2}


def save(state):
    with open(kept + ".new", "w", encoding="utf-8") as file:
        json.dump(state, file)
    os.replace(kept + ".new", kept)


def describe(state, _):
    instances = [{"name": name, "host": name + ".example", "state": at} for name, at in state["machines"].items()]
    template = {"memoryMb": 12288, "vcores": 8, "gpus": 1}
    capabilities = {"deletesNamed": True, "overlaps": overlaps}
    return {"capabilities": capabilities, "groups": {"primary": {"template": template, "instances": instances}}}


def order(state, request):
    known = state["requests"].get(request["requestId"])
    if known:
        return {"operationId": known}
    if trouble in FAILURES:
        return {"error": FAILURES[trouble]}
    if not overlaps and any(operation["polls"] > 0 for operation in state["operations"].values()):
        return {"error": {"kind": "CONFLICT", "message": "another order is under way"}}
    names = request.get("instances")
    if names is None:
        names = [f"worker-{state['made'] + number}" for number in range(request["count"])]
        state["made"] += len(names)
        to, during = "RUNNING", "PROVISIONING"
    else:
        names = [name for name in names if name in state["machines"]]
        to, during = None, "STOPPING"
    if trouble != "StockOut":
        state["machines"].update({name: during for name in names})
    number = f"operation-{len(state['operations']) + 1}"
    state["operations"][number] = {"polls": 2, "names": names, "to": to}
    state["requests"][request["requestId"]] = number
    save(state)
    if trouble == "LostAnswer":
        sys.exit("the connection is lost")
    return {"operationId": number}


def poll(state, request):
    operation = state["operations"].get(request["operationId"])
    if operation is None:
        return {"error": {"kind": "NOT_FOUND", "message": "no such operation"}}
    if operation["polls"] > 0:
        operation["polls"] -= 1
        for name in operation["names"] if operation["polls"] == 0 and trouble != "StockOut" else []:
            if operation["to"]:
                state["machines"][name] = operation["to"]
            else:
                state["machines"].pop(name, None)
        save(state)
        return {"state": "RUNNING"}
    if trouble == "StockOut":
        return {"state": "FAILED", "error": {"kind": "STOCK_OUT", "message": "no such machines just now"}}
    return {"state": "DONE"}


if trouble == "Hangs":
    time.sleep(3600)
request = json.loads(sys.stdin.readline())
methods = {"describe": describe, "create": order, "delete": order, "poll": poll}
print(json.dumps(methods[request["method"]](load(), request)))
