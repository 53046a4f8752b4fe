"""
svc: let the pods of a Job find and reach each other by name.

    Service <job>            headless: every pod has a DNS name, see `addresses`
    NetworkPolicy <job>      pods of the Job take connections from pods of the Job alone
    ConfigMap <job>-svc      who is there, task by task; follows the Job's replicas

Pods have the ConfigMap in `/etc/volcano`, where it stays right when the Job is scaled, and in
variables of their environment, which stay as they were when the pod started. A task `ps-a` of two
pods gives the keys `ps_a.host` (an address a line), `VC_PS_A_HOSTS` (with commas) and
`VC_PS_A_NUM`.
"""

from __future__ import annotations

from typing import Final

from pumice.core import names
from pumice.core.api.batch import Job, TaskSpec
from pumice.core.api.meta import Template
from pumice.core.jobs.plugins.addresses import addresses
from pumice.core.jobs.plugins.arguments import Flag
from pumice.core.jobs.plugins.plugin import JobPlugin
from pumice.core.jobs.templates import containers, extend
from pumice.core.jobs.types import Wanted

PUBLISH_NOT_READY: Final = Flag("publish-not-ready-addresses", False)
DISABLE_NETWORK_POLICY: Final = Flag("disable-network-policy", False)
INJECT_HOSTS_ENV: Final = Flag("inject-hosts-env", True)
MOUNT_PATH: Final = "/etc/volcano"


class Svc(JobPlugin):
    """The plugin."""

    name = "svc"
    flags = (PUBLISH_NOT_READY, DISABLE_NETWORK_POLICY, INJECT_HOSTS_ENV)

    def on_task(self, job: Job, task: TaskSpec, spec: Template) -> None:
        """Give the pods their domain, the hosts' files and variables."""
        config = config_name(job)
        is_told = self.args.get(INJECT_HOSTS_ENV)
        variables = [_variable(config, key) for key in _variables(job)] if is_told else []
        spec["subdomain"] = spec.get("subdomain") or job.metadata.name
        extend(spec, "volumes", [{"name": config, "configMap": {"name": config}}])
        for container in containers(spec):
            extend(container, "env", variables)
            extend(container, "volumeMounts", [{"name": config, "mountPath": MOUNT_PATH}])

    def on_pod(self, index: int, body: Template) -> None:
        """Give the pod its name in the domain."""
        spec = body["spec"]
        spec["hostname"] = spec.get("hostname") or body["metadata"]["name"]

    def objects(self, job: Job) -> list[Wanted]:
        """Return ConfigMap, Service and NetworkPolicy."""
        name = job.metadata.name
        # A pod whose environment names a key that is not there never starts.
        config = Wanted("ConfigMap", config_name(job), {"data": hosts(job)}, is_vital=True)
        wanted = [config, Wanted("Service", name, self._service(job))]
        if not self.args.get(DISABLE_NETWORK_POLICY):
            wanted.append(Wanted("NetworkPolicy", name, _policy(job)))
        return wanted

    def _service(self, job: Job) -> Template:
        spec: Template = {"clusterIP": "None", "selector": _selector(job)}
        if self.args.get(PUBLISH_NOT_READY):
            spec["publishNotReadyAddresses"] = True
        return {"spec": spec}


def config_name(job: Job) -> str:
    """Return the name of the ConfigMap, and of its volume."""
    return f"{job.metadata.name}-svc"


def hosts(job: Job) -> dict[str, str]:
    """Return the ConfigMap's data."""
    data = {}
    for task in job.spec.tasks or ():
        found = addresses(job, task)
        host_list, number = _keys(task.name or "")
        data[f"{(task.name or '').replace('-', '_')}.host"] = "\n".join(found)
        data[host_list] = ",".join(found)
        data[number] = str(len(found))
    return data


def _keys(task: str) -> tuple[str, str]:
    """Return the names of a task's two variables."""
    name = task.replace("-", "_").upper()
    return f"VC_{name}_HOSTS", f"VC_{name}_NUM"


def _variables(job: Job) -> list[str]:
    return [key for task in job.spec.tasks or () for key in _keys(task.name or "")]


def _variable(config: str, key: str) -> Template:
    return {"name": key, "valueFrom": {"configMapKeyRef": {"name": config, "key": key}}}


def _selector(job: Job) -> dict[str, str]:
    meta = job.metadata
    return {names.JOB_NAME: meta.name, names.JOB_NAMESPACE: meta.namespace}


def _policy(job: Job) -> Template:
    pods = {"matchLabels": _selector(job)}
    return {
        "spec": {
            "podSelector": pods,
            "ingress": [{"from": [{"podSelector": pods}]}],
            "policyTypes": ["Ingress"],
        }
    }
