"""Entry point of a pod that is a Spark executor, as Spark's own images have one.

`python -m spark_worker.kubernetes_executor executor`: Spark's driver creates the pods, sets the parameters as variables of their
container, and adds the argument `executor`. The JVM takes the place of this process, so it gets the kubelet's signals, and its
end is the container's.
"""

import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from spark_worker.runtime.java import VECTOR_MODULE, Java, JavaMissing, find_java
from spark_worker.settings import container_environment

_ROLE = "executor"
_BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_JAVA_OPTION = "SPARK_JAVA_OPT_"  # then its number
_PARAMETERS = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}


def executor_command(java: Java, spark_home: Path, variables: Mapping[str, str]) -> list[str]:
    """Return the command line of an executor's JVM, from the variables of its container.

    Raises KeyError with the name of a variable that is missing.
    """
    memory = variables["SPARK_EXECUTOR_MEMORY"]
    classes = [variables.get("SPARK_CLASSPATH"), f"{spark_home}/jars/*"]
    parameters = [
        word for option, name in _PARAMETERS.items() for word in (option, variables[name])
    ]
    return [
        *(str(java.binary), *_java_options(java, variables)),
        *(f"-Xms{memory}", f"-Xmx{memory}", "-cp", ":".join(filter(None, classes))),
        *(_BACKEND, *parameters),
    ]


def _java_options(java: Java, variables: Mapping[str, str]) -> list[str]:
    """Return the driver's options for executors, without a module that Java lacks."""
    names = [name for name in variables if name.startswith(_JAVA_OPTION)]
    names.sort(key=lambda name: int(name.removeprefix(_JAVA_OPTION)))
    unknown = f"--add-modules={VECTOR_MODULE}"
    return [variables[name] for name in names if java.vector or variables[name] != unknown]


def main() -> None:
    """Become the executor."""
    module_spec = find_spec("pyspark")
    if sys.argv[1:] != [_ROLE] or module_spec is None or module_spec.origin is None:
        sys.exit("Run this in a pod of a Spark driver, with PySpark and the argument `executor`.")
    variables = container_environment()
    try:
        java = find_java()
        command = executor_command(java, Path(module_spec.origin).parent, variables)
    except JavaMissing as error:
        sys.exit(str(error))
    except KeyError as missing:
        sys.exit(f"Run this in a pod of a Spark driver: {missing.args[0]} is not set.")
    os.execve(command[0], command, {**variables, "JAVA_HOME": str(java.home), "LC_ALL": "C.UTF-8"})  # noqa: S606


if __name__ == "__main__":
    main()
