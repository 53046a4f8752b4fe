"""
HyperNodes: what is discovered about the network, and what is true of those that exist.

    configuration ──► sources ──► label: from the labels of nodes ──┐
                                  ufm: from a fabric manager's list ─┴──► found ──► reconcile

Everything here is pure: what is seen goes in, what is to be done comes out.
"""
