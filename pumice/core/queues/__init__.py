"""
Queues: their state, their place in the tree, and how many PodGroups they hold.

Everything here is pure: what is seen goes in, what is to be done comes out.
"""
