"""Misbehaviour on order, so that tests see how the provider's caller takes it.

The file provider-faults.json in the lab's folder maps a fault to the methods it
strikes: {"hang": {"describe": true}, "crashAfterOrder": {"create": 1}}. A number
counts down: so many calls misbehave, then all is well.

hang             never answers
slow             answers after so many seconds (the value is the seconds)
garbage          answers with something that is no JSON
crash            ends with exit code 3 before anything is done
crashMidOrder    is killed when the order is written down but nothing is started
crashAfterOrder  is killed when the order is carried out but not answered
hangAfterOrder   never answers once the order is carried out
stockOut         refuses with STOCK_OUT
error            refuses with the error given as the value
"""

import os
import signal
import sys
import time

from .files import read_json, write_json


def take(lab, fault, method):
    """Does this fault strike now? Its value, used up by one if it is counted."""
    path = lab.path("provider-faults.json")
    faults = read_json(path)
    value = (faults or {}).get(fault, {}).get(method)
    if not value:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and fault != "slow":
        faults[fault][method] = value - 1
        write_json(path, faults)
    return value


def before(lab, method):
    """Faults that strike before the request is looked at; an error to answer, or None."""
    if take(lab, "hang", method):
        time.sleep(24 * 3600)
    time.sleep(take(lab, "slow", method) or 0)
    if take(lab, "garbage", method):
        sys.stdout.write("<html>502 Bad Gateway</html>\n")
        sys.exit(0)
    if take(lab, "crash", method):
        print("provider: crashed, as provider-faults.json wants", file=sys.stderr)
        sys.exit(3)
    if take(lab, "stockOut", method):
        return {"kind": "STOCK_OUT", "message": "no machines of this type are left", "retryAfter": "30s"}
    return take(lab, "error", method)


def after(lab, method):
    """Faults that strike when all is done, before it is told; the lab's lock is free again."""
    if take(lab, "hangAfterOrder", method):
        time.sleep(24 * 3600)


def die(lab, fault, method):
    """Be killed here, without any cleaning up, if this fault strikes."""
    if take(lab, fault, method):
        os.kill(os.getpid(), signal.SIGKILL)
