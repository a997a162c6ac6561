"""A node under gevent: the test starts it with -m. The patch comes before everything else."""

# ruff: noqa: E402
from __future__ import annotations

from gevent import monkey

monkey.patch_all()

import os
import sys
import threading

from gevent.pywsgi import WSGIServer

from flask_noderpc.chain.embedded import EmbeddedChain
from flask_noderpc.chain.producer import Pace
from flask_noderpc.testing.node import app_for


def main(database: str) -> None:
    """Serve until the input ends; say the address first."""
    chain = EmbeddedChain(database, pace=Pace(0.02, lease_s=0.5))
    chain.start()
    server = WSGIServer(("127.0.0.1", 0), app_for(chain), log=None)
    server.start()
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    # Standard input is not patched: a greenlet that read it would stop all others.
    ended = threading.Event()
    import gevent

    gevent.get_hub().threadpool.spawn(sys.stdin.readline).rawlink(lambda _: ended.set())
    ended.wait()
    server.stop()
    chain.backup(database + ".copy")
    chain.close()
    chain.close()
    print(chain.verify(), flush=True)
    chain.close()
    # Past this point the interpreter takes gevent apart before logging's patched locks, and
    # with some versions says so.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
