"""Prometheus metrics of this server; imported only if they are collected."""

from __future__ import annotations

import shutil
from collections import Counter as Count
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.gc_collector import GCCollector
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from pages.shared.server.host import sessions

if TYPE_CHECKING:
    from dmlcore.storage.runs import RunStore

# upper bounds of the histogram buckets in seconds
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0)


class _Store(Collector):
    """Prometheus collector for the number of runs by state and the free disk space, read whenever Prometheus asks for
    metrics.
    """

    def collect(self) -> Iterator[Metric]:
        store = run_store()
        runs = GaugeMetricFamily("dml_runs", "Runs by state", labels=["state"])
        for state, count in sorted(Count(run.status() for run in store.list()).items()):
            runs.add_metric([state], count)
        yield runs
        yield GaugeMetricFamily(
            "dml_store_free_bytes", "Free disk space for runs", value=shutil.disk_usage(nearest_folder(store)).free
        )


class Metrics:
    """Prometheus metrics of requests, open sockets, page reruns, sessions, runs and the server process."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        registry.register(_Store())
        self.requests = Counter("dml_requests", "Responses", ["route", "status"], registry=registry)
        self.seconds = Histogram(
            "dml_request_seconds", "Duration of requests", ["route"], buckets=SECONDS, registry=registry
        )
        self.sockets = Gauge("dml_sockets", "Open WebSockets", registry=registry)
        self.reruns = Histogram("dml_rerun_seconds", "Reruns of a page", ["page"], buckets=SECONDS, registry=registry)
        Gauge("dml_sessions", "Connected tabs", registry=registry).set_function(sessions)


@cache
def numbers() -> Metrics:
    """Return the metrics of this server; the first call creates them."""
    return Metrics()


def run_store() -> RunStore:
    from dmlcore.storage.runs import RunStore  # imported late, because the first page does not use the run store

    return RunStore()


def nearest_folder(store: RunStore) -> Path:
    """Return the run store's folder, or the closest parent that exists."""
    return next(path for path in (store.root, *store.root.parents) if path.exists())
