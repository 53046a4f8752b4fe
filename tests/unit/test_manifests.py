"""The one file for kubectl: its order, its pods, and that its parts agree with each other."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from controllers.main import arguments as controllers_arguments
from extender.main import arguments as extender_arguments
from pumice.cli.main import app
from pumice.cli.manifests import IMAGE, Admission, render
from pumice.core import catalog, conf
from pumice.core.names import NAMESPACE
from pumice.local.build import KUBERNETES_VERSION
from pumice.local.paths import manifests
from webhooks.flags import settings as webhooks_settings
from webhooks.main import arguments as webhooks_arguments

Object = dict[str, Any]

ROOT = manifests().parent
NAME = "app.kubernetes.io/name"
USER = 65532


@cache
def rendered(namespace: str = NAMESPACE) -> list[Object]:
    return list(yaml.safe_load_all(render(IMAGE, namespace)))


def objects(kind: str) -> dict[str, Object]:
    """Return the objects of a kind, by name."""
    return {body["metadata"]["name"]: body for body in rendered() if body["kind"] == kind}


def pod(deployment: str) -> Object:
    spec: Object = objects("Deployment")[deployment]["spec"]["template"]["spec"]
    return spec


def containers() -> dict[str, Object]:
    return {c["name"]: c for name in objects("Deployment") for c in pod(name)["containers"]}


def ports(container: Object) -> dict[str, int]:
    return {port["name"]: port["containerPort"] for port in container["ports"]}


# The file as a whole.


def test_everything_comes_after_what_it_needs() -> None:
    kinds = [body["kind"] for body in rendered()]
    first = {kind: kinds.index(kind) for kind in kinds}
    last = {kind: index for index, kind in enumerate(kinds)}
    assert kinds[0] == "Namespace"
    for needed in ("CustomResourceDefinition", "ServiceAccount", "ClusterRole", "ConfigMap"):
        assert last[needed] < first["Deployment"], needed
    # Pods are held only when everything is there that lets them go.
    assert kinds[-2:] == ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"]


def test_what_stays_when_the_rest_is_deleted_by_label_are_the_crds() -> None:
    unlabelled = {
        body["kind"]
        for body in rendered()
        if body["metadata"].get("labels", {}).get("app.kubernetes.io/part-of") != "pumice"
    }
    assert unlabelled == {"CustomResourceDefinition"}


def test_the_reasons_are_in_the_file() -> None:
    text = render(IMAGE)
    for file in ("scheduler-config.yaml", "deploy/scheduler.yaml"):
        for line in (manifests() / file).read_text().splitlines():
            assert line.strip() in text


def test_another_namespace_takes_the_place_of_ours_everywhere() -> None:
    text = render(IMAGE, "batch")
    assert NAMESPACE not in text
    (gate,) = (body for body in rendered("batch") if body["kind"] == "MutatingAdmissionPolicy")
    selector = gate["spec"]["matchConstraints"]["namespaceSelector"]
    assert selector["matchExpressions"][0]["values"] == ["kube-system", "batch"]
    (webhooks,) = (
        body
        for body in rendered("batch")
        if body["kind"] == "Deployment" and body["metadata"]["name"] == "pumice-webhooks"
    )
    (container,) = webhooks["spec"]["template"]["spec"]["containers"]
    assert webhooks_arguments(container["args"]).namespace == "batch"


def test_policies_take_the_place_of_the_webhooks_and_of_all_that_is_theirs() -> None:
    def keys(text: str) -> set[tuple[str, str]]:
        return {(b["kind"], b["metadata"]["name"]) for b in yaml.safe_load_all(text)}

    with_webhooks = keys(render(IMAGE))
    with_policies = keys(render(IMAGE, admission=Admission.policies))
    assert {name for _, name in with_webhooks - with_policies} == {"pumice-webhooks"}
    assert not any(name == "pumice-webhooks" for _, name in with_policies)
    assert ("ValidatingAdmissionPolicy", "pumice-jobs") in with_policies
    assert {kind.removesuffix("Binding") for kind, _ in with_policies - with_webhooks} == {
        "MutatingAdmissionPolicy",
        "ValidatingAdmissionPolicy",
    }
    assert NAMESPACE not in render(IMAGE, "batch", Admission.policies)


def test_the_image_is_that_of_every_container_of_ours() -> None:
    bodies = yaml.safe_load_all(render("registry.example:5000/a/pumice:2@sha256:" + "0" * 64))
    images = {
        container["name"]: container["image"]
        for body in bodies
        if body["kind"] == "Deployment"
        for container in body["spec"]["template"]["spec"]["containers"]
    }
    assert images.pop("kube-scheduler") == f"registry.k8s.io/kube-scheduler:{KUBERNETES_VERSION}"
    assert set(images) == {"extender", "controllers", "webhooks"}
    assert set(images.values()) == {"registry.example:5000/a/pumice:2@sha256:" + "0" * 64}


REFUSED = {
    "a namespace that others use": (["--namespace=default"], "not for Pumice alone"),
    "a namespace of Kubernetes": (["--namespace=kube-system"], "not for Pumice alone"),
    "no name of a namespace": (["--namespace=A_b"], "is not the name of a namespace"),
    "no name of an image": (["--image=a b"], "is not the name of an image"),
    "more than an image": (["--image=a\nb: c"], "is not the name of an image"),
}


@pytest.mark.parametrize(("arguments", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_is_refused_in_words(arguments: list[str], said: str) -> None:
    answer = CliRunner().invoke(app, ["manifests", *arguments])
    assert answer.exit_code == 2
    assert said in answer.output


def test_the_command_prints_the_file_and_nothing_else() -> None:
    arguments = ["--image=mine:1", "--namespace=batch", "--admission=policies"]
    answer = CliRunner().invoke(app, ["manifests", *arguments])
    want = render("mine:1", "batch", Admission.policies)
    assert (answer.exit_code, answer.output) == (0, want)


# Pods.


@pytest.mark.parametrize("name", objects("Deployment"))
def test_pods_with_no_rights_on_their_node(name: str) -> None:
    spec = pod(name)
    assert spec["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert not spec.keys() & {"hostNetwork", "hostPID", "hostIPC"}
    assert all(
        volume.keys() <= {"name", "configMap", "emptyDir"} for volume in spec.get("volumes", ())
    )


@pytest.mark.parametrize("container", containers().values(), ids=containers().keys())
def test_every_container_is_confined_probed_and_sized(container: Object) -> None:
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    for probe in ("livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["port"] in ports(container)
    assert container["resources"]["requests"].keys() == {"cpu", "memory"}
    assert container["resources"]["limits"].keys() == {"memory"}


def test_of_those_without_election_the_old_pod_goes_first() -> None:
    specs = {name: body["spec"] for name, body in objects("Deployment").items()}
    assert {name: (s["strategy"]["type"], s["replicas"]) for name, s in specs.items()} == {
        "pumice-controllers": ("RollingUpdate", 2),
        "pumice-scheduler": ("Recreate", 1),
        "pumice-webhooks": ("RollingUpdate", 1),
    }
    assert controllers_arguments(containers()["controllers"]["args"]).leader_elect


def test_the_arguments_are_such_that_the_services_know() -> None:
    args = {name: container["args"] for name, container in containers().items()}
    extender = extender_arguments(args["extender"])
    controllers = controllers_arguments(args["controllers"])
    webhooks = webhooks_arguments(args["webhooks"])
    for name, parsed in (
        ("extender", extender),
        ("controllers", controllers),
        ("webhooks", webhooks),
    ):
        assert parsed.healthz == f":{ports(containers()[name])['metrics']}"
        # In a pod it is the account's token.
        assert parsed.kubeconfig is None
    assert webhooks_settings(webhooks).port == ports(containers()["webhooks"])["webhooks"]


def test_the_port_that_binds_pods_is_open_to_the_pod_alone() -> None:
    (text,) = objects("ConfigMap")["pumice-kube-scheduler"]["data"].values()
    listen = extender_arguments(containers()["extender"]["args"]).listen
    assert yaml.safe_load(text)["extenders"][0]["urlPrefix"] == f"http://{listen}"
    assert listen.startswith("127.0.0.1:")
    number = int(listen.rpartition(":")[2])
    assert all(number not in ports(container).values() for container in containers().values())


# What they refer to.


def test_every_account_is_somebodys_and_has_its_role() -> None:
    used = {pod(name)["serviceAccountName"] for name in objects("Deployment")}
    bound = {
        subject["name"]
        for kind in ("ClusterRoleBinding", "RoleBinding")
        for body in objects(kind).values()
        for subject in body["subjects"]
    }
    assert used == set(objects("ServiceAccount")) == bound


def test_the_pod_of_the_scheduler_may_do_what_both_of_its_containers_do() -> None:
    roles = {
        body["roleRef"]["name"]
        for body in objects("ClusterRoleBinding").values()
        if body["subjects"][0]["name"] == "pumice-scheduler"
    }
    assert roles == {"system:kube-scheduler", "system:volume-scheduler", "pumice-extender"}


def test_no_right_is_given_wholesale() -> None:
    for kind in ("ClusterRole", "Role"):
        for name, body in objects(kind).items():
            for rule in body["rules"]:
                given = {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
                assert not given & {"*", "deletecollection", "escalate", "impersonate"}, name


def test_every_file_that_is_named_is_mounted() -> None:
    for deployment in objects("Deployment"):
        spec = pod(deployment)
        volumes = {volume["name"]: volume for volume in spec.get("volumes", ())}
        for container in spec["containers"]:
            there = {
                f"{place['mountPath']}/{file}"
                for place in container.get("volumeMounts", ())
                if (source := volumes[place["name"]].get("configMap"))
                for file in objects("ConfigMap")[source["name"]]["data"]
            }
            named = {
                path for argument in container["args"] for path in re.findall(r"/etc/.*", argument)
            }
            assert named == there, container["name"]


def test_services_lead_to_ports_that_there_are() -> None:
    for name, service in objects("Service").items():
        labels = objects("Deployment")[name]["spec"]["template"]["metadata"]["labels"]
        assert service["spec"]["selector"].items() <= labels.items()
        there = [port for container in pod(name)["containers"] for port in ports(container)]
        leads = {port["targetPort"] for port in service["spec"]["ports"]}
        assert sorted(there) == sorted(leads), name


def test_the_webhooks_register_the_service_that_leads_to_them() -> None:
    settings = webhooks_settings(webhooks_arguments(containers()["webhooks"]["args"]))
    there = settings.endpoint.client_config("/x", b"")["service"]
    service = objects("Service")[there["name"]]
    assert there["namespace"] == service["metadata"]["namespace"]
    assert {p["port"]: p["targetPort"] for p in service["spec"]["ports"]}[
        there["port"]
    ] == "webhooks"
    role = objects("Role")["pumice-webhooks"]
    assert role["rules"][0]["resourceNames"] == [settings.secret]


def test_what_others_may_reach_is_what_is_served() -> None:
    figures, webhooks = (
        {port["port"] for rule in body["spec"]["ingress"] for port in rule["ports"]}
        for _, body in sorted(objects("NetworkPolicy").items())
    )
    there = {port for container in containers().values() for port in ports(container).values()}
    assert figures | webhooks == there
    assert webhooks == {ports(containers()["webhooks"])["webhooks"]}


def test_the_sessions_configuration_is_one_that_works() -> None:
    (text,) = objects("ConfigMap")["pumice-scheduler"]["data"].values()
    parsed = conf.parse(text)
    assert parsed.warnings == ()
    assert all(map(catalog.action_named, parsed.actions))
    assert all(catalog.plugin_named(option.name) for tier in parsed.tiers for option in tier)


# The image.


def project() -> Object:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_image_is_called_after_the_version() -> None:
    assert f"pumice:{project()['project']['version']}" == IMAGE
    assert f"docker build --tag {IMAGE} ." in (ROOT / "Dockerfile").read_text()


def test_the_image_runs_as_the_user_that_pods_run_as() -> None:
    assert f"\nUSER {USER}:{USER}\n" in (ROOT / "Dockerfile").read_text()


def test_the_image_is_made_of_the_packages_and_nothing_else() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    kept = {line.removeprefix("!") for line in lines if line.startswith("!")}
    wheel = project()["tool"]["hatch"]["build"]["targets"]["wheel"]
    packages = {*wheel["packages"], *wheel["force-include"]}
    assert kept == packages | {"LICENSE", "README.md", "pyproject.toml", "requirements.lock"}
    assert "*" in lines
