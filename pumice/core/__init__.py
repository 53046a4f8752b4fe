"""
The pure core: it decides, and does nothing.

State comes in as values, decisions go out as values. Nothing in here reads a clock, opens a
socket, starts a thread or draws a random number; what it needs of those is passed in.
"""
