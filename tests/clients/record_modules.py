"""Record staking, distribution, mint, slashing, evidence and genutil of the Cosmos SDK.

``python -m tests.clients.record_modules PROGRAM``; ``go build`` in tests/clients/sdk makes the
program, and its record_modules*.go define the recorded chain. The chain runs in memory at fixed
times, with fixed keys and a fixed random seed, so that two recordings are the same. The
recording is gzipped JSON; bytes are in base64, except where hex is named:

``chain_id``, ``genesis``, ``accounts``, ``init``
    As in the recording of the bank. The validators are created by the genesis transactions.
``validators``
    ``{name: {seed, pub_key, address, operator}}``: the consensus key of each account (its 32
    bytes of seed as hex), its address as hex, and the operator address.
``blocks``
    ``[{height, time, proposer_address, next_validators_hash, votes, misbehavior, txs, events,
    validator_updates, consensus_param_updates, app_hash}]``. ``votes`` is the last commit,
    ``[[address, power, flag]]`` in CometBFT's order (flags: 1 absent, 2 commit, 3 nil);
    ``misbehavior`` is ``[{type, address, power, height, time, total_power}]``. ``txs`` are
    ``[{name, bytes, check, deliver}]`` as in the recording of the bank; ``check`` is left out
    if CheckTx accepted the transaction. All addresses and hashes are hex.
``states``
    ``{height: {export, pool, rewards}}`` after block 1, every 20 blocks and the last one:
    the modules' exported genesis states by module name, the answer of staking's Pool, and
    that of distribution's DelegationTotalRewards by account address.
``queries``
    As in the recording of the bank, asked after the last block.
``refused``
    ``{misbehavior, error}``: evidence for which FinalizeBlock returns an error after the last
    block, because its validator is unknown.
``imported``
    ``{genesis, init, blocks, states}`` of another chain, whose genesis is the state that the
    first one exported after block 120.
``gas``
    ``{name: {bytes, gas_used, steps}}`` as in the recording of the bank, of the first scripted
    transaction of each name that succeeded.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

from .record_bank import RECORDING as BANK

RECORDING = BANK.with_name("modules_0.53.8.json.gz")


def main(program: Path) -> None:
    """Write what the program prints."""
    found = subprocess.run([program, "-record-modules"], check=True, stdout=subprocess.PIPE)
    RECORDING.write_bytes(gzip.compress(found.stdout, mtime=0))
    print(f"{len(found.stdout)} bytes, {RECORDING.stat().st_size} compressed")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
