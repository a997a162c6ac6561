"""The node, its keys and its peers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...domain.network import NetInfo, NodeInfo
from ...domain.validator import ED25519, PublicKey
from ...errors import NotSupported

NO_NODE_ID = bytes(20)
NO_VALIDATOR_KEY = PublicKey(ED25519, bytes(32))


class Network:
    """The node and its peers. The default is a node without peers."""

    def __init__(self, chain_id: Callable[[], str]) -> None:
        self._chain_id = chain_id
        self.info: NodeInfo | None = None
        """Node info of ``status``; one with the chain id alone if not set."""
        self.key: PublicKey | None = None
        """The node's validator key, if it has one."""

    def node_info(self) -> NodeInfo:
        """Return the node info."""
        return self.info or NodeInfo(id=NO_NODE_ID, network=self._chain_id())

    def net_info(self) -> NetInfo:
        """Return the peers."""
        return NetInfo()

    def validator_key(self) -> PublicKey:
        """The node's own validator key; 32 zero bytes when it has none."""
        return self.key or NO_VALIDATOR_KEY

    def catching_up(self) -> bool:
        """Return true while blocks are fetched from peers."""
        return False

    def dial_seeds(self, addresses: Sequence[str]) -> None:
        """Begin to ask these nodes, each ``id@host:port``, for others."""
        raise NotSupported("this node stands alone, it dials nobody")

    def dial_peers(
        self, addresses: Sequence[str], *, persistent: bool, unconditional: bool, private: bool
    ) -> None:
        """Begin to connect to these nodes, each ``id@host:port``."""
        raise NotSupported("this node stands alone, it dials nobody")
