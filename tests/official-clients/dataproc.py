"""Google's own client for Dataproc drives the stand-in: what it is told must mean what the service's answers mean."""

import sys
import time

from google.api_core import exceptions
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import dataproc_v1
from google.protobuf import duration_pb2, field_mask_pb2

from refusal import refused

BASE = sys.argv[1].rstrip("/")
PROJECT, REGION = "p", "us-central1"
OPTIONS = ClientOptions(api_endpoint=BASE)
PLACE = {"project_id": PROJECT, "region": REGION}


def client(kind):
    return kind(transport="rest", credentials=AnonymousCredentials(), client_options=OPTIONS)


clusters = client(dataproc_v1.ClusterControllerClient)
policies = client(dataproc_v1.AutoscalingPolicyServiceClient)


def get(name="gpu1"):
    return clusters.get_cluster(request={**PLACE, "cluster_name": name})


def resize(mask, primaries=None, secondaries=None, graceful=0, request_id=None):
    cluster = dataproc_v1.Cluster()
    if primaries is not None:
        cluster.config.worker_config.num_instances = primaries
    if secondaries is not None:
        cluster.config.secondary_worker_config.num_instances = secondaries
    return clusters.update_cluster(
        request={
            **PLACE,
            "cluster_name": "gpu1",
            "cluster": cluster,
            "update_mask": field_mask_pb2.FieldMask(paths=mask),
            "graceful_decommission_timeout": duration_pb2.Duration(seconds=graceful),
            "request_id": request_id or "",
        }
    )


WORKERS = "config.worker_config.num_instances"
SECONDARIES = "config.secondary_worker_config.num_instances"
State = dataproc_v1.ClusterStatus.State


def sizes():
    cluster = get()
    assert cluster.status.state == State.RUNNING, cluster.status
    assert cluster.status_history, "states before this one"
    assert cluster.metrics.yarn_metrics["yarn-nodes-active"] >= 2
    config = cluster.config
    assert len(config.worker_config.instance_names) == config.worker_config.num_instances
    assert config.worker_config.accelerators[0].accelerator_count == 1
    assert config.secondary_worker_config.is_preemptible
    assert config.secondary_worker_config.preemptibility.name == "SPOT"
    return config.worker_config.num_instances, config.secondary_worker_config.num_instances


def grow_and_shrink():
    operation = resize([SECONDARIES], secondaries=5, graceful=900, request_id="6f1c0b1e-0000-4000-8000-000000000001")
    assert operation.metadata.operation_type == "UPDATE" and operation.metadata.cluster_name == "gpu1"
    made = operation.result(timeout=60)
    assert made.cluster_name == "gpu1" and made.status.state == State.UNKNOWN, "no state in an operation's answer"
    assert sizes() == (2, 5)
    assert operation.metadata.status.state == dataproc_v1.ClusterOperationStatus.State.DONE
    assert [past.state.name for past in operation.metadata.status_history] == ["PENDING", "RUNNING"]
    # The client leaves a zero out: masked and absent is zero.
    resize([SECONDARIES], secondaries=0).result(timeout=60)
    assert sizes() == (2, 0)
    resize([WORKERS, SECONDARIES], primaries=3, secondaries=4).result(timeout=60)
    assert sizes() == (3, 4)


def one_at_a_time():
    """A drain that lasts; the client's own call to cancel it fails before it sends anything: its session sends it."""
    first = resize([SECONDARIES], secondaries=1, graceful=3600, request_id="again")
    same = resize([SECONDARIES], secondaries=1, graceful=3600, request_id="again")
    assert same.operation.name == first.operation.name
    busy = refused(exceptions.BadRequest, lambda: resize([SECONDARIES], secondaries=2))
    assert busy.response.json()["error"]["status"] == "FAILED_PRECONDITION", busy
    assert get().status.state == State.UPDATING and not first.done()
    clusters.transport._session.post(f"{BASE}/v1/{first.operation.name}:cancel", json={}).raise_for_status()
    refused(exceptions.GoogleAPICallError, lambda: first.result(timeout=60))
    assert first.operation.error.code == 1 and sizes() == (3, 4)


def refusals():
    assert "gpu2" in refused(exceptions.NotFound, lambda: get("gpu2")).message
    refused(exceptions.BadRequest, lambda: resize(["config.gce_cluster_config.zone_uri"]))
    refused(exceptions.BadRequest, lambda: resize([SECONDARIES], secondaries=1, request_id="x" * 41))
    refused(exceptions.BadRequest, lambda: resize([SECONDARIES], secondaries=1, graceful=86401))
    refused(exceptions.BadRequest, lambda: resize([WORKERS], primaries=1))


def repair():
    """The public client has no call for it: its own session sends the request."""
    names = list(get().config.secondary_worker_config.instance_names)
    pool = {"id": "SECONDARY_WORKER_POOL", "instanceNames": names[:1], "repairAction": "DELETE"}
    address = f"{BASE}/v1/projects/{PROJECT}/regions/{REGION}/clusters/gpu1:repair"
    answer = clusters.transport._session.post(address, json={"nodePools": [pool], "gracefulDecommissionTimeout": "0s"})
    answer.raise_for_status()
    operations = clusters.transport.operations_client
    name = answer.json()["name"]
    assert any(operation.name == name for operation in operations.list_operations(name.rsplit("/", 1)[0], ""))
    while not operations.get_operation(name).done:
        time.sleep(0.02)
    operation = operations.get_operation(name)
    metadata = dataproc_v1.ClusterOperationMetadata.deserialize(operation.metadata.value)
    assert operation.HasField("response") and metadata.operation_type == "REPAIR"
    left = get().config.secondary_worker_config
    assert names[0] not in left.instance_names and left.num_instances == len(names) - 1


def create_and_delete():
    accelerator = {"accelerator_type_uri": "nvidia-tesla-t4", "accelerator_count": 1}
    config = {
        "worker_config": {"num_instances": 2, "machine_type_uri": "n1-standard-8", "accelerators": [accelerator]},
        "secondary_worker_config": {"num_instances": 1, "preemptibility": "NON_PREEMPTIBLE"},
    }
    cluster = {"project_id": PROJECT, "cluster_name": "other", "config": config}
    made = clusters.create_cluster(request={**PLACE, "cluster": cluster, "request_id": "create-1"}).result(timeout=60)
    assert made.config.worker_config.num_instances == 2
    refused(exceptions.Conflict, lambda: clusters.create_cluster(request={**PLACE, "cluster": cluster}))
    listed = clusters.list_clusters(request={**PLACE, "filter": "status.state = ACTIVE", "page_size": 1})
    assert [cluster.cluster_name for cluster in listed] == ["gpu1", "other"], "over two pages"
    assert not get("other").config.secondary_worker_config.is_preemptible
    clusters.delete_cluster(request={**PLACE, "cluster_name": "other"}).result(timeout=60)
    refused(exceptions.NotFound, lambda: get("other"))


def autoscaling_policies():
    parent = f"projects/{PROJECT}/regions/{REGION}"
    yarn = {"scale_up_factor": 0.05, "scale_down_factor": 1.0, "graceful_decommission_timeout": {"seconds": 3600}}
    policy = {
        "id": "pol1",
        "basic_algorithm": {"yarn_config": yarn},
        "worker_config": {"max_instances": 10},
        "secondary_worker_config": {"max_instances": 20},
    }
    made = policies.create_autoscaling_policy(request={"parent": parent, "policy": policy})
    assert made.name == f"{parent}/autoscalingPolicies/pol1"
    assert made.basic_algorithm.cooldown_period.total_seconds() == 120
    assert (made.worker_config.min_instances, made.worker_config.weight, made.secondary_worker_config.weight) == (2, 1, 1)
    made.worker_config.max_instances = 12
    policies.update_autoscaling_policy(request={"policy": made})
    assert policies.get_autoscaling_policy(request={"name": made.name}).worker_config.max_instances == 12
    assert [listed.id for listed in policies.list_autoscaling_policies(request={"parent": parent})] == ["pol1"]
    made.basic_algorithm.yarn_config.scale_up_factor = 7
    refused(exceptions.BadRequest, lambda: policies.update_autoscaling_policy(request={"policy": made}))
    policies.delete_autoscaling_policy(request={"name": made.name})
    refused(exceptions.NotFound, lambda: policies.get_autoscaling_policy(request={"name": made.name}))


for step in (
    grow_and_shrink,
    one_at_a_time,
    refusals,
    repair,
    create_and_delete,
    autoscaling_policies,
):
    step()
    print(f"{step.__name__}: right")
