"""
Where it comes from how busy nodes are: the section `metrics` of the configuration.

A source answers for all nodes at once. `polling` asks it from time to time, while a plugin that
reads the figures is configured, and hands them to the engine.
"""
