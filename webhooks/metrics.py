"""Metrics of the webhooks."""

from __future__ import annotations

from pumice.kube import metrics


class Metrics:
    """All metrics of one process."""

    def __init__(self) -> None:
        made = self.made = metrics.Metrics("pumice_webhook_")
        self._requests = made.counter(
            "requests", "Questions by path and what became of them.", ("path", "outcome")
        )
        self._seconds = made.histogram(
            "request_duration_seconds", "Time from question to answer.", ("path",)
        )
        self.certificate_ends = made.gauge(
            "certificate_expiry_timestamp_seconds", "When the certificate in force ends."
        )
        self.certificates_refused = made.counter(
            "certificates_refused", "Certificates that were not taken into use."
        )
        self.registrations = made.counter(
            "registrations", "Times that the registration had to be put right."
        )

    def answered(self, path: str, outcome: str, seconds: float) -> None:
        """Note one answer."""
        self._requests.labels(path, outcome).inc()
        self._seconds.labels(path).observe(seconds)
