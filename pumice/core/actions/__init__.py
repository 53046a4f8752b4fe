"""The steps of a cycle, each a verb on the session. They run in the configured order."""
