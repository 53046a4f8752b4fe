"""
Recording a session, and running it again.

A session is a function of its snapshot, its configuration, the time, its id and what was answered
from outside. `record` puts all of these and what was decided into one text; `run` makes the same
session of the text, under the same configuration or another one; `differences` says in words where
two runs differ.
"""
