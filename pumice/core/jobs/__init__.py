"""
Volcano Jobs: from what happened to what is to be done.

    pod, PodGroup, Command, Job changed ──events──► Request ──policies──► Decision (an action)
    Decision + what is in the caches   ──state table──► sync or kill ──► list of effects

Everything here is pure. `controllers.job` keeps the caches, hands over what it sees, carries the
effects out in their order and asks again. Nothing is remembered between two calls that does not
stand in an API object, delayed actions apart, so a restart of the controller loses nothing.
"""
