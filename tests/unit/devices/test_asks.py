"""What pods ask of cards."""

from __future__ import annotations

import pytest

from pumice.core import names
from pumice.core.api.core import Pod
from pumice.core.devices.asks import Ask, Step, asks_of
from tests.devices import a_card_pod, a_container, vgpu

CASES: dict[str, tuple[Pod, tuple[Ask, ...]]] = {
    "nothing": (a_card_pod("p", {}), ()),
    "a number alone is whole cards": (
        a_card_pod("p", vgpu(2)),
        (Ask("vgpu", (Step(0, 2, percentage=100),)),),
    ),
    "memory alone is one card": (
        a_card_pod("p", vgpu(0, 4000)),
        (Ask("vgpu", (Step(0, 1, 4000),)),),
    ),
    "a percentage, and compute": (
        a_card_pod("p", vgpu(1, percentage=25, cores=30)),
        (Ask("vgpu", (Step(0, 1, percentage=25, cores=30),)),),
    ),
    "compute alone is nothing without a number": (a_card_pod("p", vgpu(0, cores=10)), ()),
    "each container by its place": (
        a_card_pod("p", vgpu(1, 1000), {}, vgpu(2, 500)),
        (Ask("vgpu", (Step(0, 1, 1000), Step(2, 2, 500)), places=3),),
    ),
    "init containers that want none have no place": (
        a_card_pod("p", vgpu(1, 1000), inits=(a_container({}),)),
        (Ask("vgpu", (Step(0, 1, 1000),)),),
    ),
    "init containers that want some come first, sidecars stay": (
        a_card_pod(
            "p",
            vgpu(1, 1000),
            inits=(a_container(vgpu(1, 10)), a_container(vgpu(1, 20), restart="Always")),
        ),
        (
            Ask(
                "vgpu",
                (
                    Step(0, 1, 10, role="init"),
                    Step(1, 1, 20, role="sidecar"),
                    Step(2, 1, 1000),
                ),
                places=3,
            ),
        ),
    ),
    "the older kinds are asked for by the pod as a whole": (
        a_card_pod(
            "p",
            {names.GPU_MEMORY: "1000"},
            {names.GPU_MEMORY: "500"},
            inits=(a_container({names.GPU_MEMORY: "1200"}),),
        ),
        (Ask("memory", (Step(0, 1, 1500),)),),
    ),
    "cards for oneself": (
        a_card_pod("p", {names.GPU_NUMBER: "3"}),
        (Ask("number", (Step(0, 3),)),),
    ),
    "wishes": (
        a_card_pod(
            "p",
            vgpu(1, 10),
            annotations={
                names.VGPU_MODE: "mig",
                names.USE_GPU_TYPE: "A100, V100",
                names.AVOID_GPU_UUID: "GPU-1,",
                names.VGPU_GROUP_POLICY: "spread",
            },
        ),
        (
            Ask(
                "vgpu",
                (Step(0, 1, 10),),
                mode="mig",
                use_types=("a100", "v100"),
                avoid_uuids=("GPU-1",),
                spread=True,
            ),
        ),
    ),
}


@pytest.mark.parametrize(("pod", "want"), CASES.values(), ids=CASES.keys())
def test_what_a_pod_asks(pod: Pod, want: tuple[Ask, ...]) -> None:
    assert asks_of(pod) == want
