"""
The policies of scheduling, one module or package for each plugin of Volcano.

A plugin registers functions when a session opens and holds nothing after it. Plugins do not know
each other.
"""
