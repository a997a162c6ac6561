"""Record auth, bank and tx of the Cosmos SDK, with which the application ``bank`` is compared.

``python -m tests.clients.record_bank PROGRAM``; ``go build`` in tests/clients/sdk makes the
program, and its record*.go say what is recorded. The program runs chains in memory, without
consensus, at fixed times and with signatures that are the same each time, so that two
recordings are the same. The recording is gzipped JSON; bytes are in base64, except where hex is
named:

``chain_id``, ``genesis``
    The chain's id, and the genesis document in CometBFT's form.
``accounts``
    ``{name: {mnemonic, address, pub_key}}``; pub_key of ``multi`` is the protobuf of its
    LegacyAminoPubKey, of the others the 33 bytes. The chain doesn't know frank.
``init``
    ResponseInitChain, as Go's JSON: validators' keys, app_hash.
``scenarios``
    ``[{name, blocks, state}]``. Each is a separate chain that begins with the genesis; its
    block 1 is empty. ``blocks`` are ``[{height, time, txs, events, validator_updates,
    consensus_param_updates}]``; ``txs`` are ``[{name, bytes, hash, check, deliver}]``: before a
    block each of its transactions is given to CheckTx, in order, then all of them, also if
    CheckTx refused one, to FinalizeBlock. ``check`` and ``deliver`` are ``{code, codespace,
    log, info,
    data, gas_wanted, gas_used, events}``, events ``[{type, attributes: [{key, value,
    index}]}]``. The stack of a panic is left out of the log, which ends at ``stack:``. Bytes in
    a log that are not UTF-8 are U+FFFD, as in CometBFT's JSON.
    ``state`` is that after the last block: ``{accounts, balances, supply}``, accounts as the
    SDK's JSON in order of their addresses' bytes, balances ``{address: {denom: amount}}``.
``queries``
    ``[{scenario, name, path, data, height, prove, request, reply}]``, asked by abci_query after
    the last block of the scenario. ``request`` and ``reply.read`` are what data and value say,
    as the SDK's JSON, if they were made of a message.
``gas``
    ``{name: {bytes, gas_used, steps}}``: what a transaction in block 2 of a new chain pays for,
    in order: ``{gas, for}`` is a consumption; ``{op, store, key, value, end}`` is the read,
    write, delete or iteration that it goes with (before the bytes read are paid, after those
    written are). Key and value are hex; a value that is not there is left out.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

RECORDING = Path(__file__).parent.parent / "golden" / "bank_0.53.8.json.gz"


def main(program: Path) -> None:
    """Write what the program prints."""
    found = subprocess.run([program, "-record-bank"], check=True, stdout=subprocess.PIPE)
    RECORDING.write_bytes(gzip.compress(found.stdout, mtime=0))
    print(f"{len(found.stdout)} bytes, {RECORDING.stat().st_size} compressed")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
