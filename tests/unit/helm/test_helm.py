"""The Helm chart: its rendering against the Kubernetes schemas, and its values.

Helm is not a package dependency. The rendered chart is kept beside this test with the digest of its
sources: where `helm` is on PATH it is rendered again and compared, elsewhere the digest tells
whether it is current. `make helm` writes it.
"""

import json
import shutil
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from jsonschema import Draft7Validator

from api.cli.main import app
from api.config.settings import Settings
from spark_worker.runtime.spark_options import read_conf_file
from tests.unit.helm.rendering import CHART, RENDERED, VALUES, digest_of, render

COMMANDS = app.commands
VERSIONS = ("1.25", "1.31", kubernetes_validate.latest_version())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text())
OF_OTHERS = {"ServiceMonitor"}
COMPOSE = CHART.parents[1] / "compose.replicated.yaml"
PROCESSES = {"Deployment", "Job"}
OURS = {"api", "sweeper", "deliverer", "worker", "migrate"}

RELEASE = {"app.kubernetes.io/name": "millstream", "app.kubernetes.io/instance": "mill"}
OF_EXECUTORS = {"POD_NAME", "POD_IP"}
"""Variables that options of Spark name."""

each_case = pytest.mark.parametrize("case", VALUES)

# The validator reads a file of all definitions for each resource that it validates.
kubernetes_validate.utils.schema_contents = cache(kubernetes_validate.utils.schema_contents)


def over(values: Any, more: Any) -> Any:
    """Merge values over others, as Helm does."""
    if not (isinstance(values, dict) and isinstance(more, dict)):
        return more
    return values | {name: over(values.get(name), one) for name, one in more.items()}


@cache
def resources(case: str) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all((RENDERED / f"{case}.yaml").read_text()) if one]


def pods(case: str) -> dict[str, dict[str, Any]]:
    """Pod specs by process."""
    return {
        resource["metadata"]["labels"]["app.kubernetes.io/component"]: resource["spec"]["template"][
            "spec"
        ]
        for resource in resources(case)
        if resource["kind"] in PROCESSES
    }


@each_case
def test_rendering_is_current(case):
    first = (RENDERED / f"{case}.yaml").read_text().partition("\n")[0]

    assert first == f"# {digest_of(case)}", "run `make helm`"


@each_case
@pytest.mark.skipif(not shutil.which("helm"), reason="helm is not installed")
def test_helm_renders_the_same(case):
    assert (RENDERED / f"{case}.yaml").read_text() == render(case, "helm")


@pytest.mark.skipif(not shutil.which("helm"), reason="helm is not installed")
def test_helm_lint_reports_nothing():
    subprocess.run(["helm", "lint", "--strict", CHART], check=True, capture_output=True)


@each_case
@pytest.mark.parametrize("version", VERSIONS)
def test_rendered_resources_match_kubernetes_schemas(case, version):
    for resource in resources(case):
        if resource["kind"] not in OF_OTHERS:
            kubernetes_validate.validate(resource, version, strict=True)


def test_values_match_schema_and_typing_errors_do_not():
    Draft7Validator.check_schema(SCHEMA)
    values = Draft7Validator(SCHEMA)

    assert list(values.iter_errors(DEFAULTS)) == []
    for path in VALUES.values():
        if path is not None:
            assert list(values.iter_errors(over(DEFAULTS, yaml.safe_load(path.read_text())))) == []
    for wrong in (
        {"replicas": 3},
        {"api": {"replicas": 1, "workers": 0}},
        {"existingSecret": ""},
        {"settings": {"LOG_LEVEL": "debug"}},
        {"archive": {"url": "/archive"}},
        {"stores": {"enabled": True, "count": 4}},
        {"networkPolicy": {"enabled": True, "from": [{"podSelectors": {}}]}},
        {"networkPolicy": {"enabled": True, "executors": [{}]}},
        {"worker": {"replicas": 1, "executors": {"conf": {"master": "local"}}}},
        {"worker": {"replicas": 1, "executors": {"memory": "1Gi"}}},
        {"api": {"replicas": 1, "workers": 1, "autoscaling": {"metrics": ["cpu"]}}},
    ):
        assert list(values.iter_errors(DEFAULTS | wrong)) != [], wrong


def test_notes_say_which_process_routes_topics():
    notes = (CHART / "templates" / "NOTES.txt").read_text()
    [line] = [line for line in notes.splitlines() if "-deliverer" in line]

    assert "routes the messages of topics" in line


def test_schema_covers_all_values():
    properties = SCHEMA["properties"]

    assert set(DEFAULTS) <= set(properties)
    for name in (
        "image",
        "archive",
        "tls",
        "api",
        "worker",
        "stores",
        "service",
        "ingress",
        "serviceMonitor",
        "networkPolicy",
    ):
        assert set(DEFAULTS[name]) <= set(properties[name]["properties"]), name


@each_case
def test_pods_run_existing_commands_as_non_root(case):
    actual_pods = pods(case)

    has_archive = case in ("everything", "executors")
    assert set(actual_pods) == OURS - (set() if has_archive else {"worker"})
    for process, pod in actual_pods.items():
        [container] = pod["containers"]
        command, *options = container["args"]
        taken = {name for one in COMMANDS[command].params for name in one.opts}
        assert {one for one in options if one.startswith("--")} <= taken, process
        assert pod["securityContext"]["runAsNonRoot"]
        assert container["securityContext"]["readOnlyRootFilesystem"]


@each_case
def test_pods_set_only_existing_settings(case):
    known = {f"MILLSTREAM_{name.upper()}" for name in Settings.model_fields}
    for pod in pods(case).values():
        names = {one["name"] for one in pod["containers"][0]["env"]}

        assert names <= known | {"REDIS_URL", "DATABASE_URL", "STORE_PASSWORD", *OF_EXECUTORS}
        assert {"REDIS_URL", "DATABASE_URL", "MILLSTREAM_ARCHIVE_URL"} <= names


@each_case
def test_pods_disable_service_links(case):
    assert all(pod["enableServiceLinks"] is False for pod in pods(case).values())


@each_case
def test_api_pod_has_probes_with_matching_scheme(case):
    [container] = pods(case)["api"]["containers"]
    scheme = "HTTPS" if case == "everything" else "HTTP"

    assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert {
        container[f"{one}Probe"]["httpGet"]["scheme"]
        for one in ("liveness", "readiness", "startup")
    } == {scheme}


@each_case
def test_selectors_match_the_intended_pods(case):
    labels = {
        resource["metadata"]["name"]: resource["spec"]["template"]["metadata"]["labels"]
        for resource in resources(case)
        if resource["kind"] in ("Deployment", "StatefulSet")
    }
    [api] = [found for name, found in labels.items() if name.endswith("-api")]
    for resource in resources(case):
        name = resource["metadata"]["name"]
        target = labels[name] if name.endswith("-stores") else api
        match resource["kind"]:
            case "Deployment" | "StatefulSet":
                wanted = resource["spec"]["selector"]["matchLabels"]
                assert wanted.items() <= labels[name].items()
            case "Service":
                assert resource["spec"]["selector"].items() <= target.items()
            case "PodDisruptionBudget":
                assert resource["spec"]["selector"]["matchLabels"].items() <= target.items()
            case _:
                pass


@pytest.mark.parametrize("case", ["everything", "stores", "executors"])
def test_network_policies_admit_only_intended_peers(case):
    policies = {
        one["metadata"]["name"].removeprefix("mill-millstream-"): one["spec"]
        for one in resources(case)
        if one["kind"] == "NetworkPolicy"
    }
    selected = {
        name: spec["podSelector"]["matchLabels"]["app.kubernetes.io/component"]
        for name, spec in policies.items()
    }
    admitted = {name: spec["ingress"] for name, spec in policies.items() if spec["ingress"]}
    values = yaml.safe_load((VALUES[case] or CHART).read_text())["networkPolicy"]

    assert {spec["policyTypes"][0] for spec in policies.values()} == {"Ingress"}
    assert set(pods(case)) <= set(selected.values())
    assert selected.pop("stores", "store") == "store"
    of_executors = _admission([7078, 7079], "executor")
    of_release = [{"podSelector": {"matchLabels": RELEASE}}]
    assert all(name == component for name, component in selected.items())
    if case == "everything":
        assert admitted == {
            "api": [{"ports": [{"port": "http"}], "from": values["from"]}],
            "worker": [of_executors, {"from": values["executors"]}],
            "executor": [_admission([7079], "worker", "executor")],
        }
    elif case == "executors":
        assert admitted == {
            "api": [{"ports": [{"port": "http"}]}],
            "worker": [of_executors],
            "executor": [_admission([7079], "worker", "executor")],
        }
    else:
        assert admitted == {
            "api": [{"ports": [{"port": "http"}]}],
            "stores": [{"ports": [{"port": "redis"}], "from": of_release}],
        }


def _admission(ports: list[int], *components: str) -> dict[str, Any]:
    """Return the rule that admits pods of the release to these ports."""
    return {
        "ports": [{"port": port} for port in ports],
        "from": [
            {"podSelector": {"matchLabels": RELEASE | {"app.kubernetes.io/component": component}}}
            for component in components
        ],
    }


@each_case
def test_pods_of_a_kind_are_spread_over_zones_and_nodes(case):
    for process in OURS & set(pods(case)) - {"migrate"}:
        spread = pods(case)[process]["topologySpreadConstraints"]

        assert [one["topologyKey"].split("/")[1] for one in spread] == ["zone", "hostname"]
        for one in spread:
            labels = one["labelSelector"]["matchLabels"]
            assert labels["app.kubernetes.io/component"] == process


def test_chart_version_matches_project():
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())

    assert chart["appVersion"] == project["version"]


def test_processes_name_every_replicated_store():
    [stores] = [one for one in resources("stores") if one["kind"] == "StatefulSet"]
    name, service = stores["metadata"]["name"], stores["spec"]["serviceName"]
    addresses = [f"{name}-{number}.{service}:6379" for number in range(stores["spec"]["replicas"])]

    for pod in pods("stores").values():
        environment = {one["name"]: one.get("value") for one in pod["containers"][0]["env"]}

        assert environment["REDIS_URL"] == f"redis://:$(STORE_PASSWORD)@{','.join(addresses)}/0"
        assert environment["MILLSTREAM_DURABILITY"] == "replicated"


def test_replicated_store_has_settings_of_compose():
    """Those of the compose file are compared with the members that the tests run."""
    [stores] = [one for one in resources("stores") if one["kind"] == "StatefulSet"]
    [container] = stores["spec"]["template"]["spec"]["containers"]
    compose = yaml.safe_load(COMPOSE.read_text())["services"]["valkey-2"]["command"]
    own = ("--dir", "--maxmemory ", "--requirepass", "--masterauth")

    assert {word for word in container["args"] if not word.startswith(own)} == {
        word for word in compose if not word.startswith(own)
    }
    assert container["readinessProbe"]["exec"]["command"] == ["valkey-cli", "ping"]


@pytest.mark.parametrize("case", ["executors", "everything"])
def test_executor_template_is_as_confined_as_the_other_pods(case):
    """Spark adds the image, resources and its own labels; the rest of the pod is the template's."""
    template = executor_template(case)
    pod, [container] = template["spec"], template["spec"]["containers"]
    worker = pods(case)["worker"]
    [of_worker] = worker["containers"]

    for version in VERSIONS:
        complete = container | {"image": "some"}
        spec = pod | {"containers": [complete]}
        kubernetes_validate.validate(template | {"spec": spec}, version, strict=True)
    assert pod["securityContext"] == worker["securityContext"]
    assert container["securityContext"] == of_worker["securityContext"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["serviceAccountName"] == pods(case)["api"]["serviceAccountName"]
    assert template["metadata"]["labels"].items() >= RELEASE.items()


def executor_template(case: str = "executors") -> dict[str, Any]:
    template: dict[str, Any] = yaml.safe_load(spark_files(case)["executor.yaml"])
    return template


def spark_files(case: str = "executors") -> dict[str, str]:
    """Files of the worker's Spark by name."""
    files: dict[str, str]
    [files] = [one["data"] for one in resources(case) if one["kind"] == "ConfigMap"]
    return files


def test_only_the_worker_has_an_account_that_may_create_pods():
    [role] = [one for one in resources("executors") if one["kind"] == "Role"]
    [binding] = [one for one in resources("executors") if one["kind"] == "RoleBinding"]
    [subject] = binding["subjects"]
    of_pods = pods("executors")

    assert {one for rule in role["rules"] for one in rule["resources"]} == {"pods"}
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert of_pods.pop("worker")["serviceAccountName"] == subject["name"]
    assert all(
        pod.get("serviceAccountName") != subject["name"] and not pod["automountServiceAccountToken"]
        for pod in of_pods.values()
    )


def test_worker_accepts_options_of_the_chart_and_mounts_them(tmp_path):
    files, worker = spark_files(), pods("executors")["worker"]
    [container] = worker["containers"]
    [mount] = [one for one in container["volumeMounts"] if one["name"] == "spark"]
    environment = {one["name"]: one.get("value") for one in container["env"]}
    conf = tmp_path / "spark.conf"
    conf.write_text(files["spark.conf"])

    options = read_conf_file(conf)

    assert environment["MILLSTREAM_SPARK_CONF_FILE"] == f"{mount['mountPath']}/spark.conf"
    assert environment["MILLSTREAM_SPARK_MASTER"].startswith("k8s://")
    template = options["spark.kubernetes.executor.podTemplateFile"]
    assert template == f"{mount['mountPath']}/executor.yaml"
    assert options["spark.kubernetes.container.image"] == container["image"]
    assert options["spark.authenticate"] == "true"


def test_executors_mount_the_claim_of_a_directory_archive():
    """The worker refuses a directory with a cluster unless it is told that executors have it."""
    [worker] = pods("everything")["worker"]["containers"]
    template = executor_template("everything")["spec"]
    environment = {one["name"]: one.get("value") for one in worker["env"]}

    assert environment["MILLSTREAM_ARCHIVE_SHARED"] == "true"
    assert {"name": "archive", "mountPath": "/archive"} in template["containers"][0]["volumeMounts"]
    assert [one for one in template["volumes"] if one["name"] == "archive"] == [
        {"name": "archive", "persistentVolumeClaim": {"claimName": "archive"}}
    ]
