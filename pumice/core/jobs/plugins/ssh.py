"""
ssh: let the pods of a Job log in to each other without a password.

    Secret <job>-ssh     id_rsa, id_rsa.pub, authorized_keys    one key pair for the whole Job
                         config                                 every pod by name; follows replicas

Every container has it as its user's `.ssh` directory. The keys are drawn when the Secret is made,
by whoever makes it, and stay as long as it does: pods that run keep theirs, and a restart of the
whole Job brings new ones.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Final

from pumice.core.api.batch import Job, TaskSpec
from pumice.core.api.meta import Template
from pumice.core.jobs.plugins.addresses import domain, hosts
from pumice.core.jobs.plugins.arguments import Flag
from pumice.core.jobs.plugins.plugin import JobPlugin
from pumice.core.jobs.templates import containers, extend
from pumice.core.jobs.types import Wanted

KEY_PATH: Final = Flag("ssh-key-file-path", "/root/.ssh")
PRIVATE_KEY: Final = Flag("ssh-private-key", "")
PUBLIC_KEY: Final = Flag("ssh-public-key", "")
PORT: Final = Flag("ssh-port", 22)
FILES: Final = ("id_rsa", "id_rsa.pub", "authorized_keys", "config")

#: ssh takes no private key that others may read; but files are root's, and others need theirs
_MODE_OF_ROOT: Final = 0o600
_MODE_OF_OTHERS: Final = 0o644


class Ssh(JobPlugin):
    """The plugin."""

    name = "ssh"
    flags = (KEY_PATH, PRIVATE_KEY, PUBLIC_KEY, PORT)

    @property
    def port(self) -> int:
        """Return where sshd listens; what is no port counts as the usual one."""
        port = self.args.get(PORT)
        return port if 1 <= port <= 65535 else PORT.default

    def on_task(self, job: Job, task: TaskSpec, spec: Template) -> None:
        """Mount the Secret into main and init containers."""
        name, path = secret_name(job), self.args.get(KEY_PATH)
        secret = {
            "secretName": name,
            "items": [{"key": file, "path": f".ssh/{file}"} for file in FILES],
            "defaultMode": _MODE_OF_ROOT if path == KEY_PATH.default else _MODE_OF_OTHERS,
        }
        extend(spec, "volumes", [{"name": name, "secret": secret}])
        for container in containers(spec):
            mount = {"name": name, "mountPath": path, "subPath": ".ssh"}
            extend(container, "volumeMounts", [mount])

    def objects(self, job: Job) -> list[Wanted]:
        """Return the Secret, with the keys that were given or to be completed by drawn ones."""
        data = {"config": self._config(job)}
        if private := self.args.get(PRIVATE_KEY):
            public = self.args.get(PUBLIC_KEY)
            data |= {"id_rsa": private, "id_rsa.pub": public, "authorized_keys": public}
        content = {"type": "Opaque", "data": {key: _encoded(text) for key, text in data.items()}}
        # Keys of somebody else must not come into the Job's pods.
        return [Wanted("Secret", secret_name(job), content, is_vital=True, draws_keys=not private)]

    def _config(self, job: Job) -> str:
        """Return the client's configuration: who is there, and that hosts need no introduction."""
        lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
        for task in job.spec.tasks or ():
            lines += self._entries(hosts(job, task), domain(job, task))
        return "".join(f"{line}\n" for line in lines)

    def _entries(self, hosts: Sequence[str], domain: str) -> list[str]:
        return [
            line
            for host in hosts
            for line in (f"Host {host}", f"  HostName {host}.{domain}", f"  Port {self.port}")
        ]


def secret_name(job: Job) -> str:
    """Return the name of the Secret, and of its volume."""
    return f"{job.metadata.name}-ssh"


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
