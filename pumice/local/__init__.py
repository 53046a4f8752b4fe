"""
A real control plane on this machine, without containers.

etcd, kube-apiserver, kube-controller-manager, kube-scheduler and KWOK (which plays the kubelets)
are built from one Go module, started on free loopback ports, and end with the process that
started them. The demo, `pumice cluster` and the tests all stand on it.
"""
