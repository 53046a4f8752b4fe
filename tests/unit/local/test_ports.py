"""Ports are ours until given back, and never the kernel's to hand out."""

from __future__ import annotations

import socket

from pumice.local.ports import EPHEMERAL, LOWEST, Ports


def test_two_holders_never_get_the_same_port() -> None:
    one, other = Ports(), Ports()
    try:
        claimed = [holder.claim() for _ in range(20) for holder in (one, other)]
        assert len(set(claimed)) == len(claimed)
    finally:
        one.close()
        other.close()


def test_ports_lie_below_the_ephemeral_range() -> None:
    first = int(EPHEMERAL.read_text().split()[0])
    ports = Ports()
    try:
        assert all(LOWEST <= ports.claim() < first for _ in range(20))
    finally:
        ports.close()


def test_a_port_that_somebody_listens_on_is_not_given_out() -> None:
    holder = Ports()
    port = holder.claim()
    with socket.create_server(("127.0.0.1", port)):
        holder.release(port)
        taken = Ports()
        try:
            assert not taken.claim_exactly(port)
        finally:
            taken.close()


def test_a_port_given_back_can_be_claimed_again() -> None:
    holder, next_holder = Ports(), Ports()
    try:
        port = holder.claim()
        assert not next_holder.claim_exactly(port)
        holder.release(port)
        assert next_holder.claim_exactly(port)
    finally:
        holder.close()
        next_holder.close()
