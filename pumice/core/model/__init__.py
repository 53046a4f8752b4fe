"""
What a scheduling cycle sees: tasks, jobs, nodes, queues, and the constraints of tasks.

Plain values and arrays made from API objects. Nothing in here decides anything, and nothing
knows of sessions or plugins.
"""
