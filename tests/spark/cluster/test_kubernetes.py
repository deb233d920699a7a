"""Jobs on executors that Spark requests from Kubernetes, with the options and the template of the rendered chart.

The API server is a stub that runs a pod's container as a process. The driver, its requests and the executors are real.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_worker.runtime.spark_options import read_conf_file
from spark_worker.settings import WorkerSettings
from storage.domain.jobs import JobState
from tests.conditions import eventually
from tests.replay_steps import SOURCE, everything, replay_request
from tests.spark.cluster.kubernetes_api import ADDRESS, KubernetesApi, kubernetes_api
from tests.spark.cluster.test_cluster import append_numbers
from tests.spark.test_archive import archived_bodies
from tests.spark.workers import ON_SPARK, worker_process
from tests.unit.helm.test_helm import executor_template, resources, spark_files

pytestmark = [
    pytest.mark.chaos,
    pytest.mark.parametrize("redis_url", ["plain"], indirect=True),
]

RECORDS = 4_000
DRIVER = "mill-millstream-worker-0"
POD = {"POD_NAME": DRIVER, "POD_IP": ADDRESS}
PORTS = ("spark.driver.port", "spark.driver.blockManager.port", "spark.blockManager.port")
TEMPLATE = "spark.kubernetes.executor.podTemplateFile"


@pytest.fixture
def api(tmp_path) -> Iterator[KubernetesApi]:
    folder = tmp_path / "pods"
    folder.mkdir()
    with kubernetes_api(folder, DRIVER) as serving:
        yield serving


def options_of_chart(folder: Path) -> dict[str, str]:
    """Write the chart's files, and return its options; ports are free ones, as all pods are on this machine."""
    for name, content in spark_files().items():
        (folder / name).write_text(content)
    return {
        **read_conf_file(folder / "spark.conf"),
        **dict.fromkeys(PORTS, "0"),
        "spark.kubernetes.executor.apiPollingInterval": "1s",
        TEMPLATE: str(folder / "executor.yaml"),
    }


async def test_jobs_run_in_pods_of_the_chart(storage, stores, api, ended, tmp_path):
    records = await append_numbers(storage, RECORDS)
    options = options_of_chart(tmp_path)
    executors = int(options["spark.executor.instances"])
    settings = WorkerSettings(
        storage=stores,
        spark_master=api.master_url,
        spark_memory_mb=512,
        spark_conf=options,
        scratch=tmp_path / "scratch",
        log=tmp_path / "driver.log",
    )

    with worker_process(settings, tmp_path / "log", "real", ON_SPARK, **POD) as worker:
        jobs = [await ended((await storage.archive_admin.flush(SOURCE)).job_id)]
        api.kill_container(api.created[0]["metadata"]["name"])
        replay = await storage.replays.submit("default", replay_request())
        jobs.append(await ended(replay.job.job_id))
        await eventually(lambda: _created(api), executors + 1)
        worker.terminate()
        worker.wait()

    assert [job.state for job in jobs] == [JobState.DONE, JobState.DONE], jobs
    assert sorted(one.record.data for one in await everything(storage)) == sorted(records)
    assert sorted(await archived_bodies(storage, stores, SOURCE)) == sorted(records)
    assert api.requests["delete", "pods"] == 1  # of the killed container
    for pod in api.created:
        _assert_of_chart(pod, options)
    [role] = [one for one in resources("executors") if one["kind"] == "Role"]
    [rule] = role["rules"]
    assert {(verb, one) for one in rule["resources"] for verb in rule["verbs"]} >= set(api.requests)
    assert set(api.pods) == {DRIVER}


async def _created(api: KubernetesApi) -> int:
    return len(api.created)


def _assert_of_chart(pod, options) -> None:
    template = executor_template()
    spec, [container] = pod["spec"], pod["spec"]["containers"]
    [expected] = template["spec"]["containers"]
    [owner] = pod["metadata"]["ownerReferences"]

    assert owner["name"] == DRIVER
    assert pod["metadata"]["labels"].items() >= template["metadata"]["labels"].items()
    for name in ("serviceAccountName", "automountServiceAccountToken", "securityContext"):
        assert spec[name] == template["spec"][name], name
    assert spec["nodeSelector"] == template["spec"]["nodeSelector"]
    assert container["image"] == options["spark.kubernetes.container.image"]
    assert container["command"] == expected["command"]
    assert container["args"] == ["executor"]
    assert container["securityContext"] == expected["securityContext"]
    assert container["resources"]["limits"]["memory"] == "1024Mi"
    assert "redis" not in repr(pod)
