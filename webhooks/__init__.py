"""
The webhooks: what the API server asks before it stores a Job, a queue, a PodGroup or a pod.

What is right and wrong is decided in `pumice.core.admission`; here are the HTTP side, the
certificate, and the registration with the API server.
"""
