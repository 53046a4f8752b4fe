"""
What the extender tells about itself: health, figures, and the debug API under `/debug`.

It is served beside the hot path and must not slow it down: what takes long is worked out in a
thread of its own, one question after the other, on what the last session saw; lists are short, or
are sent in pieces. Nothing here changes anything.

Whoever presents a bearer token sees what the Kubernetes rights behind it allow, and so does
everybody where the listener is not on loopback; see `readers`.
"""
