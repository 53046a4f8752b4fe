"""
Explaining: why something waits, where it is and why there, as data and in a plain sentence.

A session writes down why what it looked at waits (`pumice.core.plan.Reason`). `sentences` is the
one place that puts such a record into words; everything else here adds to it what the tables say:
how far the pods have got, who holds what is short, how a node was chosen. Nothing is decided, and
what is read is never changed.
"""
