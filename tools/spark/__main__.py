"""Runs a Spark cluster from the terminal: `python -m tools.spark start|status|stop`."""

from __future__ import annotations

import argparse
import sys

from tools.setup.environments import InstallError
from tools.setup.java import JavaNotFoundError
from tools.setup.programs import ProgramError

from .cluster import SparkCluster, SparkStartError, running_clusters
from .environments import NEWEST_PYSPARK, python_with_pyspark


def main(arguments: list[str] | None = None) -> int:
    """Runs the command and returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return {"start": _start, "stop": _stop, "status": _status}[options.command](options)
    except (SparkStartError, InstallError, JavaNotFoundError, ProgramError) as error:
        print(f"spark: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.spark", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    start = commands.add_parser("start", help="start a cluster that runs until it is stopped")
    start.add_argument("--version", default=NEWEST_PYSPARK, help="PySpark; default: %(default)s")
    start.add_argument("--workers", type=int, default=2, help="default: %(default)s")
    start.add_argument("--cores", type=int, default=1, help="of a worker; default: %(default)s")
    start.add_argument("--memory", default="1g", help="of a worker; default: %(default)s")
    start.add_argument("--connect", action="store_true", help="also start a Spark Connect server")
    stop = commands.add_parser("stop", help="stop a cluster that `start` started")
    # Not all by default: other processes of the same checkout may use the clusters.
    which = stop.add_mutually_exclusive_group(required=True)
    which.add_argument("--master", help="the cluster with this address, spark://host:port")
    which.add_argument("--all", action="store_true", help="every cluster that `start` started")
    commands.add_parser("status", help="list the clusters that run")
    return parser


def _start(options: argparse.Namespace) -> int:
    cluster = SparkCluster(
        python_with_pyspark(options.version, connect=options.connect),
        workers=options.workers,
        cores=options.cores,
        memory=options.memory,
        detached=True,
    )
    cluster.start()
    print(cluster.master)
    print(cluster.web)
    if options.connect:
        try:
            print(cluster.start_connect())
        except BaseException:
            cluster.close()
            raise
    cluster.let_go()
    return 0


def _stop(options: argparse.Namespace) -> int:
    chosen = [
        cluster
        for cluster in running_clusters()
        if cluster.detached and options.master in (None, cluster.master)
    ]
    for cluster in chosen:
        cluster.stop()
        print(f"stopped {cluster.master}")
    if not chosen:
        print("no cluster to stop", file=sys.stderr)
        return int(options.master is not None)
    return 0


def _status(_options: argparse.Namespace) -> int:
    for cluster in running_clusters():
        owner = "until stopped" if cluster.detached else "until the process that started it ends"
        connect = f"  {cluster.connect}" if cluster.connect else ""
        print(f"{cluster.master}  {cluster.web}{connect}  runs {owner}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
