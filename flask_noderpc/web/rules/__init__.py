"""HTTP rules as functions of plain values: no Flask, no gevent, no I/O.

An adapter makes a :class:`.head.Head` of a request, asks :func:`.admit.admit` before it reads
the body, calls the dispatcher, and sends what :func:`.render.render` returns.
"""
