"""gunicorn -c gunicorn.conf.py 'yourapp:create_app()'"""

import os
import threading
import time

# systemd makes this folder, with RuntimeDirectory=noderpc, and names it. Without it the node is
# at a port of this machine.
_folder = os.environ.get("RUNTIME_DIRECTORY")
_port = os.environ.get("PORT", "26657")
bind = f"unix:{_folder}/node.sock" if _folder else f"127.0.0.1:{_port}"
# The socket is for the user and its group, which has nginx as a member.
umask = 0o007

# Each open websocket and each waiting call is one of a worker's connections.
worker_class = "gevent"
worker_connections = 2000
# Used by -k gthread. A quarter of them, at most 8, is reserved for other requests.
threads = 64

# Any worker serves any client; one of them also produces the blocks.
workers = 2

# Seconds without a heartbeat after which a worker is killed, not the limit of a request.
timeout = 30
# Longer than NODERPC_BROADCAST_TIMEOUT, so that calls that wait for a block are answered.
graceful_timeout = 15
# Longer than nginx's keepalive_timeout, so that nginx closes idle connections; but short, as
# a gevent worker that stops waits for idle connections too.
keepalive = 10

# gunicorn creates it in the user's home directory, which may not exist.
control_socket_disable = True


def post_worker_init(worker):
    """Close websockets and answer waiting calls as soon as the worker stops."""
    threading.Thread(target=_hang_up_at_stop, args=(worker,), daemon=True).start()


def _hang_up_at_stop(worker):
    # Imported here, after gevent has patched the standard library.
    from flask_noderpc import hang_up

    while worker.alive:
        time.sleep(0.25)
    hang_up(worker.wsgi)
