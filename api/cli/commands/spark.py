"""`millstream spark`: what a Spark cluster needs to run the worker's tasks."""

from pathlib import Path
from typing import Annotated

import typer

from api.cli.errors import CliError, ExitCode
from api.cli.shell.terminal import Terminal, noun, verb

spark = noun()


@verb(spark, "pack", examples=["millstream spark pack millstream-executors.tar.gz"])
def pack(
    cli: Terminal,
    target: Annotated[Path, typer.Argument(help="File to write, .tar.gz.")],
) -> None:
    """Pack this installation for Spark executors.

    Put the file where all executors of the cluster can read it, and name it in MILLSTREAM_SPARK_ENVIRONMENT. They need the same minor version
    of Python, and the same platform.
    """
    if not target.name.endswith(".tar.gz"):
        raise CliError(f"{target}: the name must end in .tar.gz", ExitCode.USAGE)
    from spark_worker.environment import pack as write

    try:
        size = write(target)
    except OSError as error:
        raise CliError(str(error), ExitCode.USAGE) from None
    cli.out.done(
        f"Wrote {target}: {size:,} bytes. Executors read it with MILLSTREAM_SPARK_ENVIRONMENT.",
        {"file": str(target), "bytes": size},
    )
