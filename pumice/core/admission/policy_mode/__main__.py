"""`python -m pumice.core.admission.policy_mode DIRECTORY` writes the policies."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml

from pumice.core.admission.policy_mode import jobs, others, queues
from pumice.core.admission.policy_mode.parts import Mutating, Validating

POLICIES: Final[Mapping[str, tuple[Validating | Mutating, ...]]] = {
    "jobs": (jobs.DEFAULTS, jobs.CREATION, jobs.UPDATE, queues.JOBS),
    "jobtemplates": (jobs.TEMPLATES,),
    "cronjobs": (jobs.CRON_JOBS,),
    "queues": (queues.DEFAULTS, queues.ALONE, queues.TREE, queues.DELETION, queues.CHILDREN),
    "podgroups": (others.GROUP_DEFAULTS, queues.GROUPS),
    "pods": (others.PODS,),
    "jobflows": (others.FLOWS,),
}
"""File -> the policies in it."""

HEAD: Final = """\
# Written by `make generate`; `pumice/core/admission/policy_mode` is the source, and says what
# policies cannot check. For clusters that run no webhooks of ours; the CRDs must be there first.
"""


def manifests() -> dict[str, str]:
    """Return file name -> YAML; the same rules always give the same text."""
    return {
        f"{name}.yaml": HEAD
        + yaml.safe_dump_all(
            [body for policy in policies for body in policy.manifests()],
            sort_keys=False,
            width=100,
            allow_unicode=True,
        )
        for name, policies in POLICIES.items()
    }


def main(directory: str) -> None:
    """Write the manifests into `directory`."""
    target = Path(directory)
    target.mkdir(parents=True, exist_ok=True)
    for name, text in manifests().items():
        (target / name).write_text(text)


if __name__ == "__main__":
    main(sys.argv[1])
