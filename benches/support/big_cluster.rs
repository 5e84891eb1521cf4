//! The ResourceManager's answers on a large busy cluster, field for field as Hadoop 3.3.6 writes them.
//! Shared by tests and benchmarks (`#[path]`); must not know the crate.

use std::fmt::Write;

/// How large.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Workers, of 64 GB, 16 cores and 4 GPUs each.
    pub nodes: usize,
    /// Applications; each is a gang that waits for 8 workers with a GPU and 2 parameter servers.
    pub applications: usize,
}

/// 1,000 nodes and 10,000 pending containers.
pub const BIG: Size = Size { nodes: 1_000, applications: 1_000 };

/// `/info`.
pub fn info() -> String {
    r#"{"clusterInfo":{"id":1795245337788,"startedOn":1795245337788,"state":"STARTED","haState":"ACTIVE","rmStateStoreName":"org.apache.hadoop.yarn.server.resourcemanager.recovery.NullRMStateStore","resourceManagerVersion":"3.3.6","hadoopVersion":"3.3.6"}}"#.into()
}

/// `/metrics`.
pub fn metrics(size: Size) -> String {
    let (nodes, apps) = (size.nodes, size.applications);
    format!(
        r#"{{"clusterMetrics":{{"appsSubmitted":{apps},"appsCompleted":0,"appsPending":0,"appsRunning":{apps},"appsFailed":0,"appsKilled":0,"reservedMB":0,"availableMB":{available},"allocatedMB":{allocated},"pendingMB":{pending},"reservedVirtualCores":0,"availableVirtualCores":{free_cores},"allocatedVirtualCores":{cores},"pendingVirtualCores":{pending_cores},"containersAllocated":{containers},"containersReserved":0,"containersPending":{containers_pending},"totalMB":{total},"totalVirtualCores":{total_cores},"utilizedMBPercent":50,"utilizedVirtualCoresPercent":25,"rmSchedulerBusyPercent":0,"totalNodes":{nodes},"lostNodes":0,"unhealthyNodes":0,"decommissioningNodes":0,"decommissionedNodes":0,"rebootedNodes":0,"activeNodes":{nodes},"shutdownNodes":0,"totalReservedResourcesAcrossPartition":{reserved},"totalAllocatedContainersAcrossPartition":{containers},"crossPartitionMetricsAvailable":true}}}}"#,
        available = nodes * 32768,
        allocated = nodes * 32768,
        pending = apps * (8 * 4096 + 2 * 2048),
        free_cores = nodes * 12,
        cores = nodes * 4,
        pending_cores = apps * 10,
        containers = nodes * 4,
        containers_pending = apps * 10,
        total = nodes * 65536,
        total_cores = nodes * 16,
        reserved = resource(0, 0, 0),
    )
}

/// `/nodes`.
pub fn nodes(size: Size) -> String {
    let mut out = String::from(r#"{"nodes":{"node":["#);
    for n in 0..size.nodes {
        let comma = if n == 0 { "" } else { "," };
        write!(
            out,
            r#"{comma}{{"rack":"/default-rack","state":"RUNNING","id":"gpu-w-{n}.c.project.internal:8041","nodeHostName":"gpu-w-{n}.c.project.internal","nodeHTTPAddress":"gpu-w-{n}.c.project.internal:8042","lastHealthUpdate":1795245938663,"version":"3.3.6","healthReport":"","numContainers":4,"usedMemoryMB":32768,"availMemoryMB":32768,"usedVirtualCores":4,"availableVirtualCores":12,"memUtilization":34.051025,"cpuUtilization":99.866844,"numRunningOpportContainers":0,"usedMemoryOpportGB":0,"usedVirtualCoresOpport":0,"numQueuedContainers":0,"allocationTags":{{}},"resourceUtilization":{{"nodePhysicalMemoryMB":8208,"nodeVirtualMemoryMB":8208,"nodeCPUUsage":3.994673728942871,"aggregatedContainersPhysicalMemoryMB":7,"aggregatedContainersVirtualMemoryMB":11,"containersCPUUsage":0.0}},"usedResource":{used},"availableResource":{free},"nodeAttributesInfo":{{}},"totalResource":{total}}}"#,
            used = resource(32768, 4, 4),
            free = resource(32768, 12, 0),
            total = resource(65536, 16, 4),
        )
        .expect("writing to a string does not fail");
    }
    out + "]}}"
}

/// `/apps`, accepted and running ones.
pub fn apps(size: Size) -> String {
    let mut out = String::from(r#"{"apps":{"app":["#);
    for n in 0..size.applications {
        let comma = if n == 0 { "" } else { "," };
        let node = n % size.nodes.max(1);
        write!(
            out,
            r#"{comma}{{"id":"application_1795245337788_{n:04}","user":"yarn","name":"training {n}","queue":"default","state":"RUNNING","finalStatus":"UNDEFINED","progress":0.0,"trackingUI":"ApplicationMaster","trackingUrl":"http://localhost:8088/proxy/application_1795245337788_{n:04}/","diagnostics":"","clusterId":1795245337788,"applicationType":"TONY","applicationTags":"","priority":0,"startedTime":1795245708759,"launchTime":1795245708997,"finishedTime":0,"elapsedTime":8191,"amContainerLogs":"http://gpu-w-{node}:8042/node/containerlogs/container_1795245337788_{n:04}_01_000001/yarn","amHostHttpAddress":"gpu-w-{node}.c.project.internal:8042","masterNodeId":"gpu-w-{node}.c.project.internal:8041","allocatedMB":3328,"allocatedVCores":7,"reservedMB":0,"reservedVCores":0,"runningContainers":4,"memorySeconds":8041,"vcoreSeconds":14,"queueUsagePercentage":100.0,"clusterUsagePercentage":100.0,"resourceSecondsMap":{{"entry":{{"key":"memory-mb","value":"8041"}},"entry":{{"key":"yarn.io/gpu","value":"9"}},"entry":{{"key":"vcores","value":"14"}}}},"preemptedResourceMB":0,"preemptedResourceSecondsMap":{{}},"resourceRequests":[{},{}],"logAggregationStatus":"DISABLED","unmanagedApplication":false}}"#,
            ask(1, 8, &resource(4096, 1, 1)),
            ask(0, 2, &resource(2048, 1, 0)),
        )
        .expect("writing to a string does not fail");
    }
    out + "]}}"
}

fn ask(priority: usize, containers: usize, size: &str) -> String {
    format!(
        r#"{{"priority":{priority},"allocationRequestId":0,"resourceName":"*","capability":{size},"numContainers":{containers},"relaxLocality":true,"nodeLabelExpression":"","executionTypeRequest":{{"executionType":"GUARANTEED","enforceExecutionType":false}}}}"#
    )
}

fn resource(memory: usize, vcores: usize, gpus: usize) -> String {
    let kind = |name: &str, units: &str, value: usize| {
        format!(
            r#"{{"attributes":{{}},"maximumAllocation":9223372036854775807,"minimumAllocation":0,"name":"{name}","resourceType":"COUNTABLE","units":"{units}","value":{value}}}"#
        )
    };
    let kinds = [kind("memory-mb", "Mi", memory), kind("vcores", "", vcores), kind("yarn.io/gpu", "", gpus)];
    format!(
        r#"{{"memory":{memory},"vCores":{vcores},"resourceInformations":{{"resourceInformation":[{}]}}}}"#,
        kinds.join(",")
    )
}
