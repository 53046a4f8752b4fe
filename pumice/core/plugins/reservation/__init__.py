"""
reservation: keep a start for the gang at the head, and let others use the room until then.

This is EASY backfilling, for gangs on nodes of several resources. When the first gang in line finds
no room, the earliest time is worked out at which it will, from the run times that running pods have
told, and on which nodes. From then on a pod goes to one of these nodes only if

    it ends before that time:          now + startup + its run time <= start
    or it takes nothing of the room:   what the node has at that time, less what is kept, holds it

so whatever is backfilled, the gang starts no later than it was told. `docs/reservation.md` has the
whole of it, with examples. There is one reservation at a time.

Arguments: `startup`, how long a pod takes from the decision to its start, `2s`.
"""

from pumice.core.plugins.reservation.plugin import NAME, Reservations

__all__ = ["NAME", "Reservations"]
