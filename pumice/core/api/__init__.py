"""
Kubernetes and Volcano objects as msgspec structs: the one source of their shape.

The structs hold the fields that Pumice reads; attribute names are the API's, in snake case.
Types are wide where Kubernetes is loose: quantities are `str | int | float`, Go's nulls are
allowed. The structs of our CRDs (`batch`, `scheduling`, `bus`) are complete, carry their
constraints as `msgspec.Meta`, and the CRD manifests are generated from them. A struct of a
foreign kind is partial and must never be written back: writes are patches.
"""
