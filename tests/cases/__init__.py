"""
Cases: YAML files that say what is done to a cluster and what must be seen of it.

`python -m tests.cases FILE...` runs each on a control plane of its own and prints a line for
each: PASS, FAIL with the reason, or SKIP where the product does not have what the case needs.

```
   file ──► loading ──► Case ──► needs ──────────────────────────────► SKIP
                          │
                          ▼
    Player: one step after the other ──► Record ──► checks ──► PASS or FAIL
      │  World: the cluster, watched         (what was seen)
      └─ Kubelet, Components: played by us
```
The form of a file is the types in `schema`, `selection` and `checks`; a key that they do not have
is an error of the file. Checks are pure: they read a `Record` and touch no cluster.
"""
