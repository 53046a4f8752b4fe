"""
An independent witness of the cluster: it watches, reads the audit log, and judges at the end.

The auditor runs as a program of its own beside each test on a real control plane and fails the
test when a promise of the scheduler was broken while it ran. It shares no code with what it
judges, so that a mistake in the scheduler's model cannot hide itself: the one import allowed is
this package.

What was seen is kept as plain facts (`facts`, `history`); the rules (`rules`) are pure functions
from a history to violations; everything that touches a socket or a file is in `watch`, `audit`,
`ledger` and `program`.
"""
