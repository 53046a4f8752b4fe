"""The job plugin ssh: what is mounted, what the Secret holds, what an ssh client reads in it."""

from __future__ import annotations

import base64
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pumice.core.api.batch import Job
from pumice.core.jobs import objects, plugins
from pumice.core.jobs import types as t
from pumice.core.jobs.plugins.ssh import Ssh
from pumice.core.jobs.pods import renderer
from tests.unit.jobs.builders import a_job, a_task, observed, template

Json = dict[str, Any]
FILES = ("id_rsa", "id_rsa.pub", "authorized_keys", "config")


def the_job(*arguments: str, tasks: Any = None) -> Job:
    return a_job(*(tasks or [a_task("w", 2)]), plugins={"ssh": list(arguments)})


def secret(job: Job) -> t.Wanted:
    (wanted,) = plugins.objects(job)
    return wanted


def data(job: Job) -> dict[str, str]:
    """Return the Secret's data, decoded."""
    encoded: dict[str, str] = secret(job).content["data"]
    return {key: base64.b64decode(text).decode() for key, text in encoded.items()}


def mounted(job: Job) -> Json:
    spec: Json = renderer(job, (job.spec.tasks or [])[0])(0)["spec"]
    return spec


MODES = {
    "root's files are root's alone": ([], "/root/.ssh", 0o600),
    "another user's can be read": (["--ssh-key-file-path=/home/u/.ssh"], "/home/u/.ssh", 0o644),
}


@pytest.mark.parametrize(("arguments", "path", "mode"), MODES.values(), ids=MODES.keys())
def test_the_secret_is_mounted_everywhere(arguments: list[str], path: str, mode: int) -> None:
    both = {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]}
    job = the_job(*arguments, tasks=[a_task("w", 1, template={"spec": both})])

    spec = mounted(job)

    items = [{"key": name, "path": f".ssh/{name}"} for name in FILES]
    source = {"secretName": "j-ssh", "items": items, "defaultMode": mode}
    assert spec["volumes"] == [{"name": "j-ssh", "secret": source}]
    mount = {"name": "j-ssh", "mountPath": path, "subPath": ".ssh"}
    found = spec["containers"] + spec["initContainers"]
    assert [box["volumeMounts"] for box in found] == [[mount]] * 3


def test_keys_are_drawn_by_whoever_makes_the_secret() -> None:
    job = the_job()

    (effect,) = objects.follow(observed(job))

    assert isinstance(effect, t.CreateObject)
    assert (effect.kind, effect.name) == ("Secret", "j-ssh")
    assert (effect.draws_keys, effect.is_vital) == (True, True)
    assert effect.body["type"] == "Opaque"
    assert set(effect.body["data"]) == {"config"}


def test_keys_that_were_given_are_used() -> None:
    job = the_job("--ssh-private-key=PRIVATE", "--ssh-public-key=PUBLIC")

    got = data(job)

    assert not secret(job).draws_keys
    assert {name: got[name] for name in FILES[:3]} == {
        "id_rsa": "PRIVATE",
        "id_rsa.pub": "PUBLIC",
        "authorized_keys": "PUBLIC",
    }


HEAD = "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
CONFIGS: dict[str, tuple[Job, str]] = {
    "every pod by its name": (
        the_job(tasks=[a_task("m", 1), a_task("w", 2)]),
        "Host j-m-0\n  HostName j-m-0.j\n  Port 22\n"
        "Host j-w-0\n  HostName j-w-0.j\n  Port 22\n"
        "Host j-w-1\n  HostName j-w-1.j\n  Port 22\n",
    ),
    "one entry for a task that names its host": (
        the_job(tasks=[a_task("w", 2, template=template(hostname="h", subdomain="d"))]),
        "Host h\n  HostName h.d\n  Port 22\n",
    ),
    "another port": (
        the_job("--ssh-port=2022", tasks=[a_task("w", 1)]),
        "Host j-w-0\n  HostName j-w-0.j\n  Port 2022\n",
    ),
    "what is no port is the usual one": (
        the_job("--ssh-port=70000", tasks=[a_task("w", 1)]),
        "Host j-w-0\n  HostName j-w-0.j\n  Port 22\n",
    ),
    "what comes after an argument that there is not is not looked at": (
        the_job("--no-root", "--ssh-port=2022", tasks=[a_task("w", 1)]),
        "Host j-w-0\n  HostName j-w-0.j\n  Port 22\n",
    ),
}


@pytest.mark.parametrize(("job", "want"), CONFIGS.values(), ids=CONFIGS.keys())
def test_the_config(job: Job, want: str) -> None:
    assert data(job)["config"] == HEAD + want


def test_the_config_follows_the_job_and_the_keys_stay() -> None:
    before, after = the_job(), the_job(tasks=[a_task("w", 3)])
    held = objects.following("Secret", secret(before).content["data"])
    there = {("Secret", "j-ssh"): t.Owned("s1", objects.fingerprint(held))}

    assert objects.follow(observed(before, objects=there)) == []
    assert objects.follow(observed(after, objects=there)) == [
        t.ReplaceData("Secret", "j-ssh", "s1", {"config": secret(after).content["data"]["config"]})
    ]


@pytest.mark.skipif(shutil.which("ssh") is None, reason="needs an ssh client")
def test_an_ssh_client_reads_the_config(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(data(the_job("--ssh-port=2022"))["config"])

    command = ["ssh", "-G", "-F", str(config), "j-w-1"]
    read = subprocess.run(command, check=True, capture_output=True, text=True).stdout

    for line in ("hostname j-w-1.j", "port 2022", "stricthostkeychecking false"):
        assert line in read.splitlines()


def test_the_port_is_the_usual_one_unless_told() -> None:
    assert (Ssh([]).port, Ssh(["--ssh-port=0"]).port, Ssh(["--ssh-port=7"]).port) == (22, 22, 7)
