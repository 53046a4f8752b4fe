"""
Shared devices: cards on nodes, of which pods get parts.

A node's device plugin registers its cards (`cards`), pods ask for shares of them (`asks`), and who
places a pod also chooses its cards (`choosing`, with the instances of partitioned ones in `mig`).
The choice is written into the pod as annotations with its binding and read back from there
(`notes`), so what is held (`table`) can always be made anew from nodes and pods.

Nothing in here knows of sessions or jobs; the plugin `deviceshare` and the extender do.
"""
