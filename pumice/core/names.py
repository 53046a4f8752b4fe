"""
Every label, annotation, gate and resource name that Pumice reads or writes.

Names of Volcano and Kubernetes are spelled as users write them; Pumice's own have the domain
`pumice.dev/`.
"""

from __future__ import annotations

from typing import Final

# Pumice's own.
NAMESPACE: Final = "pumice-system"
GATE_HELD: Final = "pumice.dev/held"
MARKER_RESOURCE: Final = "pumice.dev/batch-pod"
FREE_MARKER_RESOURCE: Final = "pumice.dev/free-pod"
MARKERS: Final = frozenset({MARKER_RESOURCE, FREE_MARKER_RESOURCE})
PLANNED_NODE: Final = "pumice.dev/planned-node"
RESTART: Final = "pumice.dev/restart"
EXPECTED_DURATION: Final = "pumice.dev/expected-duration"
ALLOCATION: Final = "pumice.dev/device-allocation"
FENCE: Final = "pumice.dev/fence"

# Volcano: who a pod belongs to.
GROUP_NAME: Final = "scheduling.k8s.io/group-name"
JOB_NAME: Final = "volcano.sh/job-name"
JOB_NAMESPACE: Final = "volcano.sh/job-namespace"
JOB_VERSION: Final = "volcano.sh/job-version"
JOB_RETRY_COUNT: Final = "volcano.sh/job-retry-count"
JOB_TYPE: Final = "volcano.sh/job-type"
JOB_FORWARDING: Final = "volcano.sh/job-forwarding"
TASK_SPEC: Final = "volcano.sh/task-spec"
TASK_INDEX: Final = "volcano.sh/task-index"
TASK_PRIORITY: Final = "volcano.sh/task-priority"
TEMPLATE_UID: Final = "volcano.sh/template-uid"
PARTITION_ID: Final = "volcano.sh/partition-id"
OUT_OF_SYNC: Final = "volcano.sh/controller-out-of-sync"

# Volcano: what Jobs were made by.
CRON_TIMESTAMP: Final = "volcano.sh/cronjob-scheduled-timestamp"
CREATED_BY_TEMPLATE: Final = "volcano.sh/createdByJobTemplate"
CREATED_BY_FLOW: Final = "volcano.sh/createdByJobFlow"

# Volcano: queues.
JOB_QUEUE_NAME: Final = "volcano.sh/queue-name"
QUEUE_NAME: Final = "scheduling.volcano.sh/queue-name"
QUEUE_ALLOCATION_GATE: Final = "scheduling.volcano.sh/queue-allocation-gate"
GROUP_MIN_MEMBER: Final = "scheduling.volcano.sh/group-min-member"
CLOSED_BY_PARENT: Final = "volcano.sh/closed-by-parent"
HIERARCHY: Final = "volcano.sh/hierarchy"
HIERARCHY_WEIGHTS: Final = "volcano.sh/hierarchy-weights"

# Volcano: behaviour of pods and groups.
PREEMPTABLE: Final = "volcano.sh/preemptable"
COOLDOWN_TIME: Final = "volcano.sh/cooldown-time"
REVOCABLE_ZONE: Final = "volcano.sh/revocable-zone"
STRATEGY_TYPE: Final = "volcano.sh/resource-strategy-scoring-type"
STRATEGY_WEIGHT: Final = "volcano.sh/resource-strategy-weight"
TASK_AFFINITY: Final = "volcano.sh/task-topology-affinity"
TASK_ANTI_AFFINITY: Final = "volcano.sh/task-topology-anti-affinity"
TASK_ORDER: Final = "volcano.sh/task-topology-task-order"
NODE_GROUP: Final = "volcano.sh/nodegroup-name"
NODE_GROUP_LIMITS: Final = "volcano.sh/nodegroup-resource-limits"
JDB_MIN_AVAILABLE: Final = "volcano.sh/jdb-min-available"
JDB_MAX_UNAVAILABLE: Final = "volcano.sh/jdb-max-unavailable"
RESOURCE_GROUP: Final = "volcano.sh/resource-group"
NUMA_POLICY: Final = "volcano.sh/numa-topology-policy"
SLA_WAITING_TIME: Final = "volcano.sh/sla-waiting-time"
SLA_WAITING_TIME_BARE: Final = "sla-waiting-time"
NETWORK_TOPOLOGY_MODE: Final = "volcano.sh/network-topology-mode"
NETWORK_TOPOLOGY_HIGHEST_TIER: Final = "volcano.sh/network-topology-highest-tier"
ALLOCATED_HYPERNODE: Final = "volcano.sh/job-allocated-hypernode"
TOPOLOGY_SOURCE: Final = "volcano.sh/network-topology-source"
OVERSUBSCRIPTION_CPU: Final = "volcano.sh/oversubscription-cpu"
OVERSUBSCRIPTION_MEMORY: Final = "volcano.sh/oversubscription-memory"
# Volcano: shared devices, as resources.
VGPU_NUMBER: Final = "volcano.sh/vgpu-number"
VGPU_MEMORY: Final = "volcano.sh/vgpu-memory"
VGPU_MEMORY_PERCENTAGE: Final = "volcano.sh/vgpu-memory-percentage"
VGPU_CORES: Final = "volcano.sh/vgpu-cores"
GPU_MEMORY: Final = "volcano.sh/gpu-memory"
GPU_NUMBER: Final = "volcano.sh/gpu-number"
SHARED_DEVICES: Final = frozenset(
    {VGPU_NUMBER, VGPU_MEMORY, VGPU_MEMORY_PERCENTAGE, VGPU_CORES, GPU_MEMORY, GPU_NUMBER}
)

# Volcano: shared devices, as annotations of nodes, of pods that ask, and of pods that have some.
VGPU_REGISTER: Final = "volcano.sh/node-vgpu-register"
GPU_UNHEALTHY: Final = "volcano.sh/gpu-unhealthy-ids"
VGPU_MODE: Final = "volcano.sh/vgpu-mode"
VGPU_GROUP_POLICY: Final = "volcano.sh/vgpu-podgroup-policy"
USE_GPU_TYPE: Final = "nvidia.com/use-gputype"
AVOID_GPU_TYPE: Final = "nvidia.com/nouse-gputype"
USE_GPU_UUID: Final = "volcano.sh/vgpu-use-gpuuuid"
AVOID_GPU_UUID: Final = "volcano.sh/vgpu-nouse-gpuuuid"
VGPU_NODE: Final = "volcano.sh/vgpu-node"
VGPU_TIME: Final = "volcano.sh/vgpu-time"
VGPU_IDS: Final = "volcano.sh/vgpu-ids-new"
VGPU_TO_ALLOCATE: Final = "volcano.sh/devices-to-allocate"
BIND_TIME: Final = "volcano.sh/bind-time"
BIND_PHASE: Final = "volcano.sh/bind-phase"
GPU_INDEX: Final = "volcano.sh/gpu-index"
PREDICATE_TIME: Final = "volcano.sh/predicate-time"
#: annotations of pods that say which cards they want
CARD_TRAITS: Final = (
    VGPU_MODE,
    VGPU_GROUP_POLICY,
    USE_GPU_TYPE,
    AVOID_GPU_TYPE,
    USE_GPU_UUID,
    AVOID_GPU_UUID,
)
#: annotations of pods that decide where they may go, or better go
TRAITS: Final = (
    NUMA_POLICY,
    PREEMPTABLE,
    REVOCABLE_ZONE,
    STRATEGY_TYPE,
    STRATEGY_WEIGHT,
    *CARD_TRAITS,
)
VOLCANO_PREFIX: Final = "volcano.sh/"

# Queues that always exist.
ROOT_QUEUE: Final = "root"
DEFAULT_QUEUE: Final = "default"
DEFAULT_SCHEDULER: Final = "volcano"

# API groups.
BATCH_API: Final = "batch.volcano.sh/v1alpha1"
SCHEDULING_API: Final = "scheduling.volcano.sh/v1beta1"
BUS_API: Final = "bus.volcano.sh/v1alpha1"
FLOW_API: Final = "flow.volcano.sh/v1alpha1"
TOPOLOGY_API: Final = "topology.volcano.sh/v1alpha1"
NODE_INFO_API: Final = "nodeinfo.volcano.sh/v1alpha1"

# Kubernetes.
SYSTEM_CRITICAL_CLASSES: Final = frozenset({"system-cluster-critical", "system-node-critical"})
