"""For tests of your own: a node on a free port, chains to read, the backend contract.

Importing this imports no gevent and no pytest; :mod:`.plugin` and :mod:`.contract` are
for pytest.
"""

from .chains import SampleChain, make_chain
from .node import Node, run_node

__all__ = ["Node", "SampleChain", "make_chain", "run_node"]
