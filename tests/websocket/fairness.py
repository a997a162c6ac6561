"""Run five websockets that flood and one honest peer, under gevent.

``python -m tests.websocket.fairness`` prints how many of the flood's messages are received for
each response to the honest peer.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from itertools import count

from gevent import monkey

FLOODING, ANSWERS = 5, 4
MESSAGE = b"\x81\x82\0\0\0\0{}"


def main() -> None:
    """Count the messages, and print the number."""
    from flask_noderpc.web.connection import Connection, Timing

    received = count()

    def receive(message: bytes) -> None:
        next(received)
        # Take longer than a turn, on any machine.
        until = time.perf_counter() + 0.001
        while time.perf_counter() < until:
            pass

    for _ in range(FLOODING):
        ours, theirs = socket.socketpair()
        connection = Connection(ours, Timing(), 1000)
        threading.Thread(target=connection.run, args=(receive, tuple), daemon=True).start()
        threading.Thread(target=_flood, args=(theirs,), daemon=True).start()
    _ask_honestly()
    print(next(received) // ANSWERS)
    sys.stdout.flush()
    # In 3.13 the interpreter would wait at its end for the floods, which never end.
    os._exit(0)


def _flood(sock: socket.socket) -> None:
    while True:
        sock.sendall(MESSAGE * 1000)


def _ask_honestly() -> None:
    served, asking = socket.socketpair()

    def echo() -> None:
        while True:
            served.sendall(served.recv(1))

    threading.Thread(target=echo, daemon=True).start()
    for _ in range(ANSWERS):
        asking.sendall(b"?")
        asking.recv(1)


if __name__ == "__main__":
    monkey.patch_all()
    main()
