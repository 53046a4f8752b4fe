"""
The controllers: one process that makes objects follow other objects.

A controller is a class. It is made with the client, the shared `Caches`, the event recorder and
the clock, subscribes to what it wants to hear of, and works in `run` until it is cancelled:

    class SomeController:
        def __init__(self, client, caches, events, clock, *, workers): ...
        async def run(self) -> None: ...
        def shutdown(self) -> None: ...

It decides nothing itself: a pure `reconcile` of `pumice.core` says what to do, the controller
carries it out. `run` is started when every cache is synced, so what a cache does not hold is
not there; changes told before that wait in the controller's queue. After `shutdown` it begins
nothing more, and `run` returns.
"""
