"""The few REST calls that the lab itself makes of a ResourceManager."""

import http.client
import json

TIMEOUT = 5


def call(host, method, path, body=None):
    """One request on one connection; (status, JSON or None). OSError when nobody answers."""
    connection = http.client.HTTPConnection(host, 8088, timeout=TIMEOUT)
    try:
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, parse(answer, text)
    except http.client.HTTPException as error:
        raise OSError(f"{host}: {error!r}") from error
    finally:
        connection.close()


def parse(answer, text):
    """A standby answers in plain text: that is no document."""
    if "json" not in (answer.getheader("Content-Type") or ""):
        return None
    return json.loads(text)


def state(host):
    """The HA state of a ResourceManager, None while it does not answer."""
    try:
        _, document = call(host, "GET", "/ws/v1/cluster/info")
    except OSError:
        return None
    return document and document["clusterInfo"]["haState"]


def nodes(host):
    """The nodes as YARN lists them; an empty list is an empty object there."""
    _, document = call(host, "GET", "/ws/v1/cluster/nodes")
    return (document or {}).get("nodes", {}).get("node", [])


def applications(host):
    """All applications that this ResourceManager knows."""
    _, document = call(host, "GET", "/ws/v1/cluster/apps")
    return (document or {}).get("apps", {}).get("app", [])


def kill_application(host, identifier):
    """Ask for an application's end; one that is over stays as it is."""
    call(host, "PUT", f"/ws/v1/cluster/apps/{identifier}/state?user.name=yarn", {"state": "KILLED"})
