"""
The rules as admission policies, for clusters that run no webhooks of ours.

The API server evaluates them itself, so there is nothing that could be away. They need
MutatingAdmissionPolicy, which is in Kubernetes 1.36 and later. The CRDs say what they can in
either mode; here is the rest, in the same words.

A policy sees one object and, one after the other, each queue. What it cannot say:

* that a queue is there, or that the queue above one is there: it can look at every queue, and
  cannot tell that it has seen them all
* how deep a queue is; sums over the children of a queue; what a queue two levels up allows; that
  a queue that holds pods gets its first child
* resource groups of pods: they come from a configuration file, which only the webhooks read
* that the dependencies of more than 64 tasks or flows have an order, or that chains of more than
  16 have one
* of pod templates: names of volumes and ports, labels, environment; the API server tells when
  the pods are made
"""
