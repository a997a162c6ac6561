"""``tests.faults.served`` where gevent has replaced what blocks, before anything is loaded."""

from __future__ import annotations

import sys

from gevent import monkey

if __name__ == "__main__":
    monkey.patch_all()
    from .served import main

    main(*sys.argv[1:])
