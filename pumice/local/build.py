"""
Build the control plane from its Go module, once per user.

`go.mod` beside this file pins every program, `go.sum` every byte they are made of. The programs
are kept under the user's cache directory, keyed by the hash of both files and of the way they are
built, so checkouts and virtual environments share them. No C compiler is needed.

    python -m pumice.local.build        get what is missing (kubectl too), print the directory
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from pumice.local.errors import BuildError
from pumice.local.paths import MODULE
from pumice.local.toolchain import find_go, find_kubectl

PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
}
KUBERNETES_VERSION = "v1.36.3"
OVERRIDE = "PUMICE_CONTROLPLANE_BIN"
ENVIRONMENT = {
    "CGO_ENABLED": "0",
    "GOFLAGS": "-mod=readonly",
    "GOTOOLCHAIN": "local",
    "GOWORK": "off",
}
PROGRESS_STEP = 10

Say = Callable[[str], None]


def announce(text: str) -> None:
    """Print a line at once, also where the output is a file."""
    print(text, flush=True)


def binaries(say: Say = announce) -> Path:
    """Return the directory with the programs, building them first if need be."""
    override = os.environ.get(OVERRIDE)
    if override:
        return Path(override)
    target = cache_directory() / "controlplane" / build_key()
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _locked(target.parent / "lock", say):
        if not target.is_dir():
            _build_into(target, say)
    return target


def cache_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where Pumice keeps what it can make again."""
    root = environment.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "pumice"


def build_key(module: Path = MODULE) -> str:
    """Return a name for the programs that the module yields, built as we build them."""
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum"):
        digest.update((module / name).read_bytes())
    digest.update(repr((PACKAGES, ENVIRONMENT, _linker_flags())).encode())
    digest.update(f"{platform.system()}-{platform.machine()}".encode())
    return digest.hexdigest()[:16]


def _linker_flags() -> str:
    """Strip the programs, and tell them their version as a release build would."""
    major, minor, _ = KUBERNETES_VERSION.removeprefix("v").split(".")
    values = {"gitVersion": KUBERNETES_VERSION, "gitMajor": major, "gitMinor": minor}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    stamps = [f"-X {package}.{k}={v}" for package in packages for k, v in values.items()]
    return " ".join(["-s -w", *stamps])


def _build_into(target: Path, say: Say) -> None:
    """Build beside the target and rename: a directory under the final name is complete."""
    go = find_go()
    say(f"Building the control plane (Kubernetes {KUBERNETES_VERSION}, etcd, KWOK) with {go}.")
    say("This happens once: about 1 min of downloads, then 5 min of compiling on two cores.")
    started = monotonic()
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="building-") as scratch:
        work = Path(scratch) / "bin"
        work.mkdir()
        _go(go, ["mod", "download"])
        total = len(_go(go, ["list", "-deps", *PACKAGES.values()]).splitlines())
        say(f"Modules are here after {_elapsed(started)}; compiling {total} packages.")
        _compile(go, work, total=total, started=started, say=say)
        for name, package in PACKAGES.items():
            built = work / _command_name(package)
            built.rename(work / name)
        work.rename(target)
    say(f"The control plane is built after {_elapsed(started)}: {target}")


def _compile(go: Path, work: Path, *, total: int, started: float, say: Say) -> None:
    """Run the build; `-v` names each package as it is compiled, which makes the progress."""
    options = ["-v", "-trimpath", "-ldflags", _linker_flags(), "-o", f"{work}/"]
    output: list[str] = []
    shown = 0
    with subprocess.Popen(
        [go, "build", *options, *PACKAGES.values()],
        cwd=MODULE,
        env=os.environ | ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as build:
        for line in build.stdout or ():
            output.append(line)
            percent = min(99, len(output) * 100 // total)
            if percent >= shown + PROGRESS_STEP:
                shown = percent - percent % PROGRESS_STEP
                say(f"  {shown} % after {_elapsed(started)}")
    if build.returncode:
        raise BuildError("go build failed:\n" + "".join(output[-20:]))


def _go(go: Path, arguments: list[str]) -> str:
    answer = subprocess.run(
        [go, *arguments], cwd=MODULE, env=os.environ | ENVIRONMENT, capture_output=True, text=True
    )
    if answer.returncode:
        raise BuildError(f"go {arguments[0]} failed:\n{answer.stderr.strip()}")
    return answer.stdout


def _command_name(package: str) -> str:
    """Return the name that Go gives a program: its last path element but for a version."""
    parts = package.split("/")
    return parts[-2] if parts[-1].startswith("v") and parts[-1][1:].isdigit() else parts[-1]


@contextmanager
def _locked(path: Path, say: Say) -> Iterator[None]:
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another process builds the control plane; waiting for it.")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _elapsed(started: float) -> str:
    minutes, seconds = divmod(round(monotonic() - started), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


if __name__ == "__main__":
    find_kubectl()
    print(f"The control plane's programs are in {binaries()}")
