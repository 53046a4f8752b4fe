"""
What can go wrong with the local cluster.

    LocalError
    ├── BuildError       the Go build did not succeed
    ├── ToolError        Go or kubectl is neither on PATH nor installable
    ├── ComponentError   a component ended by itself
    ├── NotReadyError    a component runs, but did not get ready in time
    └── ApiError         the API server refused a request
"""

from __future__ import annotations


class LocalError(Exception):
    """The root of all errors of `pumice.local`."""


class BuildError(LocalError):
    """The control plane could not be built."""


class ToolError(LocalError):
    """A tool is not on PATH and could not be installed either."""


class ComponentError(LocalError):
    """A component ended by itself; the message holds the end of its log."""

    def __init__(self, name: str, code: int, tail: str) -> None:
        super().__init__(f"{name} ended with code {code}. The end of its log:\n{tail}")


class NotReadyError(LocalError):
    """A component did not get ready in time; the message holds the end of its log."""

    def __init__(self, name: str, timeout_s: float, tail: str) -> None:
        super().__init__(f"{name} was not ready after {timeout_s:g} s. The end of its log:\n{tail}")


class ApiError(LocalError):
    """The API server answered with an error status."""

    def __init__(self, method: str, path: str, status: int, message: str) -> None:
        super().__init__(f"{method} {path}: {status} {message}")
        self.status = status
        self.message = message
