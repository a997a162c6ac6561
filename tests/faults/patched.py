"""Run ``tests.faults.served`` after gevent has patched the standard library."""

from __future__ import annotations

import sys

from gevent import monkey

if __name__ == "__main__":
    monkey.patch_all()
    from .served import main

    main(*sys.argv[1:])
