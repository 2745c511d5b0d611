"""Counts and times of requests in Prometheus form.

Labels are names of routes and of bundles' folders, never of subjects or clients.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

from reticent.core.extras import require

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""Folder in which several workers add up their counts; prometheus-client reads it itself."""

_SECONDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """The counts of one worker. ``page`` shows those of all workers."""

    def __init__(self) -> None:
        prometheus = require("prometheus_client", extra="service")
        self._prometheus = prometheus
        self._registry = prometheus.CollectorRegistry()
        own: dict[str, Any] = {"registry": self._registry}
        self._requests = prometheus.Counter(
            "reticent_requests_total", "Requests.", ["route", "status"], **own
        )
        self._seconds = prometheus.Histogram(
            "reticent_request_seconds", "Time of a request.", ["route"], buckets=_SECONDS, **own
        )
        self._rows = prometheus.Counter(
            "reticent_rows_answered_total", "Rows answered, repeats not counted.", ["bundle"], **own
        )
        self._held = prometheus.Gauge(
            "reticent_requests_held",
            "Requests that are being answered.",
            multiprocess_mode="livesum",
            **own,
        )

        # Finding the labels takes longer than counting.
        self._of_route = lru_cache(maxsize=1024)(
            lambda route, status: (
                self._requests.labels(route, str(status)),
                self._seconds.labels(route),
            )
        )

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        counted, timed = self._of_route(route, status)
        counted.inc()
        timed.observe(seconds)

    def rows(self, bundle: str, rows: int) -> None:
        """Count rows that were answered."""
        self._rows.labels(bundle).inc(rows)

    def held(self, requests: int) -> None:
        """Record how many requests this worker holds."""
        self._held.set(requests)

    def page(self) -> tuple[bytes, str]:
        """Return all counts, and the type of that text."""
        registry = self._registry
        if os.environ.get(FOLDER_VARIABLE):
            multiprocess = require("prometheus_client.multiprocess", extra="service")
            registry = self._prometheus.CollectorRegistry()
            multiprocess.MultiProcessCollector(registry)
        return self._prometheus.generate_latest(registry), self._prometheus.CONTENT_TYPE_LATEST
