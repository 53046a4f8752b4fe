"""JobFlows."""

from __future__ import annotations

from pumice.core import names
from tests.unit.admission.rows.row import Object, Row, an_object


def a_flow(*flows: str) -> Object:
    """Return a JobFlow; a flow is written `name < target target`."""
    steps = []
    for flow in flows:
        name, _, targets = flow.partition(" < ")
        step: Object = {"name": name}
        if targets:
            step["dependsOn"] = {"targets": targets.split()}
        steps.append(step)
    return an_object(names.FLOW_API, "JobFlow", {"flows": steps})


NO_ORDER = "jobflow Flow is not DAG"

ROWS = {
    "one flow, two after it, and one after both": Row(
        a_flow("a", "b < a", "c < a", "d < b c"),
    ),
    "two flows of a name": Row(a_flow("a", "a", "b < a")),
    "of two flows of a name the later one counts": Row(a_flow("a < b", "a", "b < a")),
    "a flow after one that there is not": Row(
        a_flow("a < nothing"), (NO_ORDER, "vertex is not defined")
    ),
    "several flows after the same one": Row(a_flow("a", "b < a", "c < a", "d < a")),
    "flows in another order": Row(a_flow("a", "b < a"), change=a_flow("a < b", "b")),
    "a chain": Row(a_flow("a", "b < a", "c < b")),
    "a chain that is longer than policies look": Row(
        a_flow("f0", *(f"f{i} < f{i - 1}" for i in range(1, 40)))
    ),
    "many ways from the first to the last": Row(
        a_flow("a", "b < a", "c < a", "d < b", "e < b c", "f < d e", "g < f a")
    ),
    "no flows": Row(a_flow()),
    "one flow": Row(a_flow("a")),
    "a flow after itself": Row(a_flow("a < a"), (NO_ORDER,)),
    "flows in a circle": Row(a_flow("a", "b < a d", "c < b", "d < c"), (NO_ORDER,)),
    "flows that are put in a circle": Row(
        a_flow("a", "b < a"), (NO_ORDER,), change=a_flow("a < b", "b < a")
    ),
    "a flow without a name": Row(a_flow(""), ("should be at least 1 chars long",)),
}
