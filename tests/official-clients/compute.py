"""Google's own client for Compute Engine drives the stand-in's managed instance groups."""

import sys
import time

from google.api_core import exceptions
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import compute_v1

from refusal import refused

BASE = sys.argv[1].rstrip("/")
PROJECT, ZONE, REGION = "p", "us-central1-a", "us-central1"
PLACE = {"project": PROJECT, "zone": ZONE, "instance_group_manager": "m1"}


def client(kind):
    return kind(credentials=AnonymousCredentials(), client_options=ClientOptions(api_endpoint=BASE))


groups = client(compute_v1.InstanceGroupManagersClient)
regional = client(compute_v1.RegionInstanceGroupManagersClient)
operations = client(compute_v1.ZoneOperationsClient)
instances = client(compute_v1.InstancesClient)
region_operations = client(compute_v1.RegionOperationsClient)
templates = client(compute_v1.InstanceTemplatesClient)
machine_types = client(compute_v1.MachineTypesClient)


def done(operation):
    """The client's own waiting would ask Google: it does not hand its address on."""
    place = {"project": PROJECT, "operation": operation.name}
    if operation.zone:
        ended = operations.wait(request={**place, "zone": operation.zone.rsplit("/", 1)[1]})
    else:
        ended = region_operations.wait(request={**place, "region": operation.region.rsplit("/", 1)[1]})
    assert ended.status == compute_v1.Operation.Status.DONE and ended.progress == 100, ended
    assert ended.target_id == operation.target_id


def listed():
    return {member.name: member for member in groups.list_managed_instances(request=PLACE)}


def until(what, look):
    for _ in range(3000):
        seen = look()
        if seen:
            return seen
        time.sleep(0.01)
    raise AssertionError(f"{what} did not come")


def all_run(count):
    def look():
        members = listed()
        runs = all(member.instance_status == "RUNNING" and member.current_action == "NONE" for member in members.values())
        return members if len(members) == count and runs else None

    return until(f"{count} running machines", look)


def get():
    return groups.get(request=PLACE)


def named_machines_come_and_go():
    assert get().target_size == 2
    before = set(all_run(2))
    body = {"instances": [{"name": "w-7"}, {"name": "w-8"}]}
    request = {**PLACE, "instance_group_managers_create_instances_request_resource": body}
    request["request_id"] = "6f1c0b1e-0000-4000-8000-000000000010"
    operation = groups.create_instances_unary(request=request)
    again = groups.create_instances_unary(request=request)
    assert again.name == operation.name, "the same request, the same operation"
    done(operation)
    assert get().target_size == 4
    assert set(all_run(4)) == before | {"w-7", "w-8"}
    body = {"instances": [f"zones/{ZONE}/instances/w-7", f"zones/{ZONE}/instances/w-99"]}
    request = {**PLACE, "instance_group_managers_delete_instances_request_resource": body}
    refused(exceptions.BadRequest, lambda: groups.delete_instances_unary(request=request))
    body["skip_instances_on_validation_error"] = True
    done(groups.delete_instances_unary(request=request))
    assert set(all_run(3)) == before | {"w-8"}
    body = {"instances": [f"{BASE}/compute/v1/projects/{PROJECT}/zones/{ZONE}/instances/w-8"]}
    request = {**PLACE, "instance_group_managers_abandon_instances_request_resource": body}
    done(groups.abandon_instances_unary(request=request))
    assert set(listed()) == before and get().target_size == 2
    assert instances.get(project=PROJECT, zone=ZONE, instance="w-8").status == "RUNNING", "abandoned, not deleted"


def sizes_change():
    done(groups.resize_unary(request={**PLACE, "size": 5, "request_id": "6f1c0b1e-0000-4000-8000-000000000012"}))
    names = all_run(5)
    assert len(names) == 5 and get().status.is_stable
    done(groups.resize_unary(request={**PLACE, "size": 2}))
    all_run(2)
    refused(exceptions.BadRequest, lambda: groups.resize_unary(request={**PLACE, "size": 2, "request_id": "no-uuid"}))


def the_zone_is_empty():
    """The test has made zone b of the group m2 a place without machines."""
    place = {"project": PROJECT, "region": REGION, "instance_group_manager": "m2"}
    done(regional.resize_unary(request={**place, "size": 4}))

    def look():
        members = list(regional.list_managed_instances(request=place))
        tried = [member for member in members if member.last_attempt.errors.errors]
        return (members, tried) if len(tried) == 2 else None

    members, tried = until("two attempts that failed", look)
    assert len(members) == 4 and all(member.current_action == "CREATING" for member in tried)
    assert {member.last_attempt.errors.errors[0].code for member in tried} == {"ZONE_RESOURCE_POOL_EXHAUSTED"}
    errors = list(regional.list_errors(request={**place, "max_results": 1}))
    assert len(errors) == 2 and errors[0].error.code == "ZONE_RESOURCE_POOL_EXHAUSTED", "over two pages"
    assert errors[0].instance_action_details.action == "CREATING"
    zones = regional.get(request=place).distribution_policy.zones
    assert [zone.zone.rsplit("/", 1)[1] for zone in zones] == [f"{REGION}-a", f"{REGION}-b"]


def the_template_says_what_machines_are():
    template = templates.get(project=PROJECT, instance_template=get().instance_template.rsplit("/", 1)[1])
    by_id = templates.get(project=PROJECT, instance_template=str(template.id))
    assert by_id.name == template.name
    accelerator = template.properties.guest_accelerators[0]
    assert (accelerator.accelerator_type, accelerator.accelerator_count) == ("nvidia-tesla-t4", 1)
    found = machine_types.get(project=PROJECT, zone=ZONE, machine_type=template.properties.machine_type)
    assert (found.guest_cpus, found.memory_mb) == (8, 30720)
    builtin = machine_types.get(project=PROJECT, zone=ZONE, machine_type="g2-standard-24").accelerators[0]
    assert (builtin.guest_accelerator_type, builtin.guest_accelerator_count) == ("nvidia-l4", 2)


def what_is_not_there():
    refused(exceptions.NotFound, lambda: operations.get(project=PROJECT, zone=ZONE, operation="nope"))
    refused(exceptions.NotFound, lambda: groups.get(request={**PLACE, "instance_group_manager": "m9"}))
    refused(exceptions.NotFound, lambda: instances.get(project=PROJECT, zone=ZONE, instance="w-99"))
    workers = "labels.goog-dataproc-cluster-name=gpu1"
    found = instances.list(request={"project": PROJECT, "zone": ZONE, "filter": workers, "max_results": 1})
    assert [instance.name for instance in found] == ["gpu1-w-0", "gpu1-w-1"]


def groups_come_and_go():
    body = {"name": "m3", "target_size": 1, "base_instance_name": "x", "instance_template": get().instance_template}
    request = {"project": PROJECT, "zone": ZONE, "instance_group_manager_resource": body}
    done(groups.insert_unary(request=request))
    refused(exceptions.Conflict, lambda: groups.insert_unary(request=request))
    assert {group.name for group in groups.list(project=PROJECT, zone=ZONE)} >= {"m1", "m3"}
    done(groups.delete_unary(project=PROJECT, zone=ZONE, instance_group_manager="m3"))
    refused(exceptions.NotFound, lambda: groups.get(project=PROJECT, zone=ZONE, instance_group_manager="m3"))


for step in (
    named_machines_come_and_go,
    sizes_change,
    the_zone_is_empty,
    the_template_says_what_machines_are,
    what_is_not_there,
    groups_come_and_go,
):
    step()
    print(f"{step.__name__}: right")
