"""
What the API server itself refuses, as CEL rules of the CRDs.

These are the rules of Volcano's webhooks that need nothing but the object: they hold even where
neither webhook nor admission policy runs, and no outage can switch them off. The texts are
Volcano's, so that whoever looks for them in a refusal finds them. Rules that need other objects
(queues, their tree), the templates of pods, or the old object are not here.
"""

from __future__ import annotations

from pumice.core.api.command_rules import COMMAND_RULES
from pumice.core.api.cron_rules import CRON_RULES
from pumice.core.api.job_rules import JOB_RULES
from pumice.core.api.queue_rules import QUEUE_RULES
from pumice.core.api.schema import Rules
from pumice.core.api.topology_rules import TOPOLOGY_RULES

RULES: Rules = {**JOB_RULES, **QUEUE_RULES, **CRON_RULES, **TOPOLOGY_RULES, **COMMAND_RULES}
"""All rules, by the struct that they are about."""
