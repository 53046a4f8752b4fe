"""
PodGroups of ordinary pods: Deployments, StatefulSets, Kubernetes Jobs, single pods.

Everything here is pure: what is seen goes in, what is to be done comes out.
"""
