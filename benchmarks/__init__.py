"""
The project's benchmark: `make bench`.

Decisions are measured in this process, paths on a real control plane with simulated nodes. Ratios
are taken between interleaved runs on one machine in one go: they mean something on a noisy
machine, absolute figures mean little.
"""
