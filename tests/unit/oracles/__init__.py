"""
Worked examples of scheduling rules: for each rule a table of small worlds and what comes of them.

A tier names exactly the flags that are on, and all groups are of one age, so that a row shows
one rule and nothing else. Names decide where nothing else does.
"""
