"""``val=ed25519!BASE64KEY!POWER``: transactions that change the validator set."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from ...backends.base.application import BlockRequest
from ...domain.block import LightClientAttackEvidence
from ...domain.validator import ED25519, PublicKey, ValidatorSet, ValidatorUpdate
from ...protocol.comet import messages, validators
from ...protocol.protobuf import delimited, varint

PREFIX = b"val="
# CometBFT: Go's ParseInt, which takes a sign and zeros before the digits.
_INTEGER = re.compile(rb"[+-]?[0-9]+")


class VotingPowers:
    """Voting powers of a validator set during a block, changed update by update."""

    def __init__(self, members: ValidatorSet) -> None:
        self._before = {v.pub_key for v in members.validators}
        self._powers = {v.pub_key: v.voting_power for v in members.validators}
        self._total = members.total_power
        self.updates: dict[PublicKey, ValidatorUpdate] = {}

    def apply(self, update: ValidatorUpdate) -> str | None:
        """Apply an update, and return ``None``, or the reason why it is invalid."""
        known = self._powers.get(update.pub_key, 0)
        total = self._total - known + update.power
        if not known and not update.power:
            return "a validator that is not in the set can't be removed"
        if not 0 < total <= validators.MAX_TOTAL_POWER:
            return f"the total voting power can't be {total}"
        self._total, self._powers[update.pub_key] = total, update.power
        self.updates[update.pub_key] = update
        if not update.power and update.pub_key not in self._before:
            # It was added and removed in one block.
            del self.updates[update.pub_key]
        return None


def parse(tx: bytes) -> ValidatorUpdate | None:
    """Parse a transaction; return ``None`` if it is not well formed."""
    fields = tx[len(PREFIX) :].split(b"!")
    if len(fields) != 3:
        return None
    kind, encoded, power = fields
    try:
        key = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        return None
    # A real node accepts other keys here and stops when the block is applied.
    if kind != ED25519.encode() or len(key) != 32:
        return None
    number = _power(power)
    if number is None:
        return None
    return ValidatorUpdate(PublicKey(ED25519, key), number)


def _power(text: bytes) -> int | None:
    if not _INTEGER.fullmatch(text):
        return None
    digits = text.lstrip(b"+-").lstrip(b"0") or b"0"
    if len(digits) > 19 or int(digits) > validators.MAX_TOTAL_POWER:
        return None
    return None if text.startswith(b"-") and digits != b"0" else int(digits)


def power_penalties(block: BlockRequest) -> Iterator[ValidatorUpdate]:
    """Yield an update that takes one unit of power from each validator that voted twice."""
    for evidence in block.evidence:
        # CometBFT 0.38: the kvstore does not punish attacks on light clients.
        if isinstance(evidence, LightClientAttackEvidence):
            continue
        entry = block.next_validators.by_address.get(evidence.vote_a.validator_address)
        if entry is not None and evidence.validator_power > 1:
            yield ValidatorUpdate(entry[1].pub_key, evidence.validator_power - 1)


def record_034(update: ValidatorUpdate) -> bytes:
    """Encode an update as CometBFT 0.34 does: after its length as a signed varint."""
    content = messages.MESSAGES.encoder("ValidatorUpdate")(update)
    return varint(len(content) << 1) + content


def record_038(update: ValidatorUpdate) -> bytes:
    """Encode an update as CometBFT 0.37 and 0.38 do: after its length."""
    return delimited(messages.MESSAGES.encoder("ValidatorUpdate")(update))


def record_1(update: ValidatorUpdate) -> bytes:
    """Encode an update as CometBFT 1.0 does: the key's bytes, and its type as text."""
    return delimited(messages.MESSAGES_1.encoder("ValidatorUpdate")(update))
