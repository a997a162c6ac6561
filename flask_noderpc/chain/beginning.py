"""The beginning of an embedded chain: its genesis, its first state, and the keys that can
sign."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

from ..backends.base.application import Application, InitChain
from ..backends.sql.store import ChainStore
from ..domain.genesis import Genesis
from ..domain.validator import ValidatorSet
from ..errors import ChainHalted, ConfigurationError, GenesisNotAvailable, InvalidBlock
from ..protocol.comet.chain_state import ChainState
from .clock import Clock
from .home import Home, NewChain, create, genesis_path, has_genesis
from .proposal import check_power

log = logging.getLogger("flask_noderpc.chain")


def open_home(store: ChainStore, folder: Path, clock: Clock, new: NewChain) -> Home:
    """Return the genesis and keys, created if missing.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` if the store has a chain whose keys
    are not in the folder.
    """
    # Check the store first: another process may be creating both, and creates the home before
    # the chain.
    if store.has_chain() and not has_genesis(folder):
        raise ConfigurationError(
            f"{store.location.display_name} holds a chain, and its keys are not in"
            f" {folder}/config: point NODERPC_HOME at them, or NODERPC_DATABASE at a new file"
        )
    stored = _stored_genesis(store)
    # A genesis document without a time gets the time at which it is first read.
    now = stored.genesis_time if stored else clock.now()
    home = create(
        folder,
        new.chain_id,
        now,
        new.app_state,
        dialect=new.dialect,
        development=new.development,
    )
    return replace(home, genesis=_as_begun(home.genesis, stored, genesis_path(folder)))


def _stored_genesis(store: ChainStore) -> Genesis | None:
    try:
        return store.reads.genesis() if store.has_chain() else None
    except GenesisNotAvailable:
        return None


def _as_begun(genesis: Genesis, stored: Genesis | None, document: Path) -> Genesis:
    """Return the genesis with the consensus parameters that the stored chain began with.

    A different version of CometBFT may have read different parameters from the same document.
    """
    if stored is None or genesis == stored:
        return genesis
    if replace(genesis, consensus_params=stored.consensus_params) != stored:
        # The store will reject this genesis.
        return genesis
    log.warning(
        "consensus_params of %s are not read as this chain began with, and the chain keeps"
        " those that it has",
        document,
    )
    return stored


def begin(
    store: ChainStore, application: Application, home: Home, folder: Path, *, produces: bool
) -> None:
    """Store the genesis and the first state of a chain; change nothing if they are already
    stored.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` if the chain has no validators, or if
    a process that ``produces`` blocks has keys with two thirds of the voting power or less.
    """
    document = genesis_path(folder)
    state = _initial_state(store, application, home.genesis, document)
    is_begun = store.has_chain()
    if is_begun:
        # The store raises an error if it has another genesis.
        store.init_chain(home.genesis, state)
        members = store.head().validators
    else:
        members = _first_validators(home.genesis, state, document)
    _check_signers(members, home, document, produces=produces)
    if not is_begun:
        store.init_chain(home.genesis, state)


def _first_validators(genesis: Genesis, state: InitChain, document: Path) -> ValidatorSet:
    try:
        return ChainState.at_genesis(genesis, updates=state.validators).validators
    except InvalidBlock as error:
        raise ConfigurationError(f"{document}: {error}") from None


def _initial_state(
    store: ChainStore, application: Application, genesis: Genesis, document: Path
) -> InitChain:
    # ABCI: InitChain is not sent to an application that has already committed a block.
    if store.reads.latest_height() and application.info().last_block_height:
        return InitChain()
    try:
        return application.init_chain(genesis)
    except ConfigurationError as error:
        raise ConfigurationError(f"{document}: {error}") from None


def _check_signers(
    members: ValidatorSet, home: Home, document: Path, *, produces: bool
) -> None:
    if not members.validators:
        raise ConfigurationError(
            f"{document}: the chain has no validators, and could never produce a block: name"
            " them in `validators` (of a document of the Cosmos SDK in `consensus.validators`),"
            " with the public key of priv_validator_key.json and a power; a chain that has"
            " begun without them needs a new NODERPC_DATABASE"
        )
    if not produces:
        return
    try:
        check_power(members, {key.address: key for key in home.validator_keys})
    except ChainHalted as error:
        raise ConfigurationError(
            f"{document.parent}: {error}, or set NODERPC_PRODUCE = False"
            " (noderpc start --produce=false) to serve the chain without producing blocks"
        ) from None
