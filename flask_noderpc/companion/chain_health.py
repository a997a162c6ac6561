"""Health of a companion: its follower, its nodes, and data that no node could provide."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from ..backends.base.health import Health, Measure, late_age
from ..backends.sql.store import ChainStore
from ..domain.network import BackfillProgress
from ..domain.time import SECOND
from ..errors import FULL
from . import shared_state
from .forward import ForwardedNetwork
from .gaps import BLOCK, MAX_GAPS, RESULTS, gaps_of
from .head_age import date_of, interval_s, looks_halted

NO_BLOCK = "no block of the chain has been fetched yet"

# A lease may be expired for this long: a restart of the following process takes less.
_PATIENCE_NS = 30 * SECOND
# Seconds by which the next block's time may be ahead of this machine's clock. Above it, a
# problem is reported, as the clock is probably wrong.
_MAX_AHEAD_S = 60
_SHOWN_GAPS = 5
_STATES = ("up", "failing", "refused")


class CompanionHealth(Health):
    """Health of a chain that is followed into a store."""

    def __init__(self, store: ChainStore, network: ForwardedNetwork) -> None:
        self._store, self._network = store, network

    def problem(self) -> str:
        lease = self._store.lease_state()
        if lease.last_error:
            return lease.last_error
        if not self._store.has_free_space():
            # Check this here, as the following process has no space to store the error.
            return f"{self._store.location.display_name}: {FULL}"
        if self._store.reads.latest_height() == 0:
            return NO_BLOCK
        if lease.expires + _PATIENCE_NS < time.time_ns():
            return (
                "no process follows the chain; run noderpc start --upstream, or noderpc follow"
            )
        ahead = shared_state.ahead(self._store)
        return (
            self._network.last_error()
            or shared_state.standstill_reason(self._store)
            or (str(ahead) if ahead and ahead.seconds > _MAX_AHEAD_S else "")
            or self._late()
        )

    def _late(self) -> str:
        """Return a text if the store lags behind the nodes, or the nodes behind their peers;
        otherwise an empty string."""
        top = self._network.upstream_height()
        if top is None or not self._network.catching_up():
            # The store is up to date: if its head is old, the chain is halted.
            return ""
        height = self._store.reads.latest_height()
        newest = self._store.reads.block_meta(height).header.time
        age = late_age(time.time_ns(), newest, interval_s(self._store))
        if age is None:
            return ""
        newest_block = f"newest block, {height}, is {age:.0f} seconds old"
        if height < top:
            return f"the store is behind: its {newest_block}; the nodes have block {top}"
        return f"the nodes are behind their peers: the {newest_block}"

    def missing(self) -> Sequence[str]:
        gaps = gaps_of(self._store)
        results = [height for height, gap in gaps.items() if gap.part == RESULTS]
        progress = shared_state.backfill(self._store)
        missing = [_describe_backfill(progress)] if progress and progress.left else []
        missing += [
            f"block {gap.height} could not be fetched: {gap.reason}"
            for gap in gaps.values()
            if gap.part == BLOCK
        ]
        if len(gaps) >= MAX_GAPS:
            missing.append(
                f"{MAX_GAPS} heights lack their block or results, which is the most that is"
                " recorded: data that is missing at further heights is not fetched again until"
                " some of these are complete"
            )
        if results:
            shown = ", ".join(str(height) for height in results[:_SHOWN_GAPS])
            more = ", ..." if len(results) > _SHOWN_GAPS else ""
            reason = gaps[results[0]].reason
            missing.append(f"no results of {shown}{more} ({len(results)} in all): {reason}")
        return missing

    def notes(self) -> Sequence[str]:
        ahead = shared_state.ahead(self._store)
        return [*([str(ahead)] if ahead else ()), *self._halted()]

    def _halted(self) -> Iterator[str]:
        """Yield a warning if the chain looks halted: the nodes have had no new block for
        long."""
        header = self._store.reads.block_meta(self._store.reads.latest_height()).header
        top = self._network.upstream_height()
        if (
            top is not None
            and not self._network.catching_up()
            and looks_halted(self._store, header, time.time_ns())
        ):
            yield (
                f"the chain looks halted since {date_of(header)}: its newest block is"
                f" {header.height}"
            )

    def measures(self) -> list[Measure]:
        return [*self._of_chain(), *self._of_nodes()]

    def _of_chain(self) -> Iterator[Measure]:
        chain = {"chain": self._store.reads.chain_id()}
        gaps = gaps_of(self._store).values()
        for part in (BLOCK, RESULTS):
            yield Measure(
                "noderpc_missing_heights",
                "Heights whose block or results no node has returned so far.",
                sum(gap.part == part for gap in gaps),
                chain | {"of": part},
            )
        refuted, _ = self._store.reads.refuted_since(0)
        yield Measure(
            "noderpc_refuted_results",
            "Blocks whose results the next header refuted.",
            refuted,
            chain,
            is_counter=True,
        )
        progress = shared_state.backfill(self._store)
        if progress is None:
            return
        for part, blocks in (("done", progress.done), ("left", progress.left)):
            yield Measure(
                "noderpc_backfill_blocks",
                "Blocks that the backfill has stored (done) and has still to store (left).",
                blocks,
                chain | {"of": part},
            )
        yield Measure(
            "noderpc_backfill_blocks_per_second",
            "Blocks that the backfill stores per second.",
            progress.rate,
            chain,
        )
        yield Measure(
            "noderpc_backfill_seconds_left",
            "Seconds until the end of the backfill at its present rate.",
            progress.seconds_left,
            chain,
        )

    def _of_nodes(self) -> Iterator[Measure]:
        height = self._network.upstream_height()
        if height is not None:
            yield Measure(
                "noderpc_upstream_height",
                "The latest height of the followed nodes.",
                height,
                {"chain": self._store.reads.chain_id()},
            )
        for name, state in self._network.upstreams().items():
            for each in _STATES:
                yield Measure(
                    "noderpc_upstreams",
                    "1 for the present state of an upstream node, 0 for its other states.",
                    each == state,
                    {"upstream": name, "state": each},
                )


def _describe_backfill(progress: BackfillProgress) -> str:
    left = f"the backfill has {progress.left} blocks left"
    if progress.reason:
        return f"{left} and pauses: {progress.reason}"
    return f"{left}, at {progress.rate:.0f} a second"
