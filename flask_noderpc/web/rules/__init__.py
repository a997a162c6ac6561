"""HTTP rules as functions of plain values, without Flask, gevent and I/O.

An adapter creates a :class:`.head.Head` from a request, calls :func:`.admit.admit` before it
reads the body, calls the dispatcher, and sends the result of :func:`.render.render`.
"""
