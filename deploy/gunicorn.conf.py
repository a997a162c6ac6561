"""gunicorn -c gunicorn.conf.py 'yourapp:create_app()'"""

import threading
import time

bind = "unix:/run/noderpc/node.sock"
# The socket is for its group, in which nginx is.
umask = 0o007

# Each open websocket and each call that waits is one of a worker's connections.
worker_class = "gevent"
worker_connections = 2000
# Of -k gthread: a quarter of them, at most 8, is kept for requests.
threads = 64

# Any worker serves any client, and one of them makes the blocks.
workers = 2

# How long a worker may be without a sign of life, not how long a request may take.
timeout = 30
# Longer than NODERPC_BROADCAST_TIMEOUT, so that who waits for a block is answered.
graceful_timeout = 15
# Longer than nginx keeps a connection without requests, so that it is nginx that ends it; and
# short, as a gevent worker that is to end waits for those too.
keepalive = 10

# It would be in the home of a user who may have none.
control_socket_disable = True


def post_worker_init(worker):
    """Have websockets closed and who waits answered as soon as a worker is to end."""
    threading.Thread(target=_see_off, args=(worker,), daemon=True).start()


def _see_off(worker):
    # Here, so that gevent has patched before it.
    from flask_noderpc import hang_up

    while worker.alive:
        time.sleep(0.25)
    hang_up(worker.wsgi)
