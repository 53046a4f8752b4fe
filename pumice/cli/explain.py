"""
`pumice explain`: why a Job, a PodGroup or a pod does not run, or where it does and why there.

The extender is asked, and what it answers is printed for people, or as it came with `-o json`.
Without `--server` that is the extender of the cluster that `pumice cluster up` has started, or the
usual port on this machine (`kubectl port-forward` brings it there).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

import typer

if TYPE_CHECKING:
    from http.client import HTTPConnection

    from pumice.core.explain.answers import Amounts, Choice, Cramped, Explanation, Holder

DEFAULT_SERVER: Final = "http://127.0.0.1:10270"
TIMEOUT_S: Final = 15.0
REFUSED: Final = 1
"""Exit code where the extender answered, and not with an explanation."""
UNREACHABLE: Final = 3
"""Exit code where nobody answered."""
HINT: Final = (
    "Is the extender running there? Name another one by --server, or forward its port:\n"
    "  kubectl -n pumice-system port-forward deployment/pumice-scheduler 10270"
)


class Kind(StrEnum):
    """What can be explained."""

    job = "job"
    podgroup = "podgroup"
    pod = "pod"


class Output(StrEnum):
    """How it is printed."""

    text = "text"
    json = "json"


def command(
    kind: Annotated[Kind, typer.Argument(help="job (Volcano's), podgroup or pod")],
    name: Annotated[str, typer.Argument(help="its name")],
    namespace: Annotated[str, typer.Option("--namespace", "-n")] = "default",
    node: Annotated[str, typer.Option(help="of a pod: what speaks for or against this node")] = "",
    output: Annotated[Output, typer.Option("--output", "-o")] = Output.text,
    server: Annotated[str, typer.Option(help="URL of the extender")] = "",
    token: Annotated[
        str, typer.Option(envvar="PUMICE_TOKEN", help="bearer token, to read with its rights")
    ] = "",
    ca: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="authority of an https server, PEM"),
    ] = None,
) -> None:
    """Say why a Job, its gang or a pod does not run, or where it does and why there."""
    from urllib.parse import quote, urlencode

    import msgspec

    from pumice.core.explain.answers import Explanation

    path = f"/debug/explain/{kind.value}/{quote(namespace, safe='')}/{quote(name, safe='')}"
    query = f"?{urlencode({'node': node})}" if node else ""
    body = _fetch(server or _default_server(), path + query, token, ca)
    if output is Output.json:
        typer.echo(msgspec.json.format(body, indent=2).decode())
        return
    try:
        explanation = msgspec.json.decode(body, type=Explanation)
    except msgspec.DecodeError as error:
        _fail(f"What the server answers is no explanation: {error}", REFUSED)
    typer.echo("\n".join(lines(explanation)))


def _default_server() -> str:
    """Return where the extender of the local cluster listens, or where it usually does."""
    from pumice.local import keeper

    state = keeper.current(keeper.state_directory())
    return (state.extender if state else "") or DEFAULT_SERVER


def _fetch(server: str, path: str, token: str, ca: Path | None) -> bytes:
    """Return the body of a GET; end the program where there is none."""
    from http.client import HTTPException

    connection = _connection(server, token, ca)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, HTTPException, ValueError) as error:
        _fail(f"No answer from {server}: {error or type(error).__name__}\n{HINT}", UNREACHABLE)
    finally:
        connection.close()
    if answer.status != HTTPStatus.OK:
        _fail(_detail(answer.status, body), REFUSED)
    return body


def _connection(server: str, token: str, ca: Path | None) -> HTTPConnection:
    """Return the connection to a server, which is not opened yet."""
    import ssl
    from http.client import HTTPConnection, HTTPSConnection
    from urllib.parse import urlsplit

    try:
        url = urlsplit(server)
        host, port = url.hostname or "", url.port
    except ValueError:
        host, port = "", None
    if not host or url.scheme not in ("http", "https") or url.path.strip("/"):
        raise typer.BadParameter(f"--server is a URL such as {DEFAULT_SERVER}, not {server!r}")
    if url.scheme == "https":
        context = ssl.create_default_context(cafile=ca)
        return HTTPSConnection(host, port, timeout=TIMEOUT_S, context=context)
    if token and not _is_here(host):
        raise typer.BadParameter("a token is sent over https, or to this machine")
    return HTTPConnection(host, port, timeout=TIMEOUT_S)


def _is_here(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def _detail(code: int, body: bytes) -> str:
    """Return what the server says is wrong."""
    import msgspec

    try:
        said = msgspec.json.decode(body)
    except msgspec.DecodeError:
        said = None
    detail = said.get("detail") if isinstance(said, dict) else None
    text = str(detail) if detail else f"the server answers with status {code}"
    hint = "\nGive a token by --token or PUMICE_TOKEN." if code == 401 else ""
    return f"{text[:1].upper()}{text[1:]}.{hint}"


def _fail(message: str, code: int) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(code)


# What is printed.

Entry = tuple[str, Sequence[str]]
"""A heading and the lines beside it."""


def lines(found: Explanation) -> Iterator[str]:
    """Yield an explanation line by line."""
    titles = {"job": "Job", "podgroup": "PodGroup", "pod": "Pod"}
    yield f"{titles[found.kind]} {found.namespace}/{found.name}: {found.state}"
    yield ""
    yield found.sentence
    entries = [(heading, beside) for heading, beside in _entries(found) if beside]
    if entries:
        yield ""
    width = max((len(heading) for heading, _ in entries), default=0)
    for heading, beside in entries:
        for i, line in enumerate(beside):
            yield f"{heading if i == 0 else '':{width}}  {line}".rstrip()


def _entries(found: Explanation) -> Iterator[Entry]:
    if found.pod_group:
        yield (
            "PodGroup",
            [f"{found.pod_group}, {found.phase or 'Pending'}, in queue {found.queue}"],
        )
    yield "Pods", list(_members(found))
    yield "Node", list(_placement(found))
    yield "Choice", list(_choice(found.choice)) if found.choice else []
    yield "Compared", _table(found)
    yield "Nodes", [f"{r.nodes} of {found.nodes}: {r.words}" for r in found.refused]
    yield "HyperNodes", [_cramped(hypernode) for hypernode in found.hypernodes]
    yield "Held by", [f"{_amounts(holder.holds)}: {_who(holder)}" for holder in found.holders]
    if found.nack:
        nack = found.nack
        where = f"{nack.at}: kube-scheduler refused {nack.pod} on {nack.node}"
        yield "Refused", [f"{where}: {nack.reason}: {nack.message}"]
    if found.decision and found.state == "waiting":
        yield "Decided", [f"by session {found.decision.session} at {found.decision.at}"]


def _members(found: Explanation) -> Iterator[str]:
    members = found.members
    if members is None:
        return
    counts = {
        "waiting": members.waiting,
        "placed": members.placed,
        "running": members.running,
        "succeeded": members.succeeded,
        "failed": members.failed,
    }
    told = ", ".join(f"{number} {word}" for word, number in counts.items() if number)
    total = f"{members.total} in all" + (f": {told}" if told else "")
    yield f"{total}; at least {members.minimum} at the same time"
    if members.ledger:
        yield ", ".join(f"{number} {state}" for state, number in members.ledger.items())


def _placement(found: Explanation) -> Iterator[str]:
    where = found.placement
    if where is None:
        return
    since = f" since {where.since}" if where.since else ""
    yield f"{where.node}{since}: {where.how}"
    if where.decision:
        others = f" with {where.together - 1} others of its gang" if where.together > 1 else ""
        yield f"chosen by session {where.decision.session} at {where.decision.at}{others}"


def _choice(choice: Choice) -> Iterator[str]:
    yield f"{choice.open} of {choice.nodes} nodes would take it as things stand"
    for refused in choice.refused:
        yield f"{refused.nodes}: {refused.words}"
    verdict = choice.verdict
    if verdict is None:
        return
    yield f"{verdict.name}: asked for {_amounts(verdict.asks)}, has {_amounts(verdict.has)}"
    for words in verdict.refusals:
        yield f"{verdict.name}: {words}"
    if verdict.score is not None and verdict.best is not None:
        yield (
            f"{verdict.name}: score {verdict.score:g}, the best {verdict.best:g},"
            f" higher ones {verdict.better}"
        )


def _cramped(tried: Cramped) -> str:
    if tried.resource:
        return f"{tried.name}: all ask for {tried.asked} {tried.resource}, {tried.had} is free"
    return f"{tried.name}: {tried.found} of {tried.wanted} find a node"


def _table(found: Explanation) -> list[str]:
    """Return the comparisons in columns."""
    if not found.compared:
        return []
    rows = [("WHO", "OF THE", "WHAT", "WANTED", "HAD")]
    for c in found.compared:
        had = f"{c.had} of {c.of}" if c.of else c.had
        rows.append((c.plugin, c.scope, c.resource, c.wanted, had))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:{w}}" for cell, w in zip(row, widths, strict=True)) for row in rows]


def _amounts(amounts: Amounts) -> str:
    return ", ".join(f"{amount} {name}" for name, amount in amounts.items()) or "nothing"


def _who(holder: Holder) -> str:
    match holder.kind:
        case "queue":
            return f"queue {holder.name}"
        case "job":
            of = f", queue {holder.queue}" if holder.queue else ""
            return f"PodGroup {holder.namespace}/{holder.name}{of}"
        case "others":
            return f"others ({holder.jobs} jobs)"
        case "ending":
            return "pods that are ending"
        case "outside":
            return "pods of other schedulers"
