"""Begin an embedded chain: load or create its genesis and keys, and store its first state."""

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
    """Return the genesis and keys in a home; create them if they are missing.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` if the store has a chain whose keys
    are not in the folder.
    """
    # Check the store first: another process may be creating both, and creates the home before
    # the chain.
    if store.has_chain() and not has_genesis(folder):
        raise ConfigurationError(
            f"{folder}/config: expected the keys of the chain in"
            f" {store.location.display_name}, got no keys; set NODERPC_HOME to their folder, or"
            " NODERPC_DATABASE to a new file"
        )
    stored = _stored_genesis(store)
    # A genesis document without a time gets the time of its first reading, which is stored.
    now = stored.genesis_time if stored else clock.now()
    home = create(
        folder,
        new.chain_id,
        now,
        new.app_state,
        dialect=new.dialect,
        development=new.development,
        amend=new.amend,
    )
    return replace(home, genesis=_as_begun(home.genesis, stored, genesis_path(folder)))


def _stored_genesis(store: ChainStore) -> Genesis | None:
    try:
        return store.reads.genesis() if store.has_chain() else None
    except GenesisNotAvailable:
        return None


def _as_begun(genesis: Genesis, stored: Genesis | None, document: Path) -> Genesis:
    """Return the genesis with the consensus parameters with which the stored chain began.

    They may differ, as another version of CometBFT reads other parameters from the same
    document.
    """
    if stored is None or genesis == stored:
        return genesis
    if replace(genesis, consensus_params=stored.consensus_params) != stored:
        # The document differs otherwise: return it, as the store then raises an error.
        return genesis
    log.warning(
        "%s: its consensus_params differ from those with which the chain began, by the rules of"
        " the present dialect; the chain keeps its own",
        document,
    )
    return stored


def begin(
    store: ChainStore, application: Application, home: Home, folder: Path, *, produces: bool
) -> None:
    """Store the genesis and the first state of a chain; change nothing if they are already
    stored.

    Raise :exc:`~flask_noderpc.errors.ConfigurationError` if the chain has no validators, or if
    the keys of a process that ``produces`` blocks don't have more than two thirds of the
    voting power.
    """
    document = genesis_path(folder)
    state = _initial_state(store, application, home.genesis, document)
    is_begun = store.has_chain()
    if is_begun:
        # Let the store raise an error if it has another genesis.
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
    # As in ABCI, skip InitChain if the application has already committed a block.
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
            " them in `validators` (in a document of the Cosmos SDK: `consensus.validators`),"
            " with the public key of priv_validator_key.json and a power; a chain that has"
            " begun without validators needs a new NODERPC_DATABASE"
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
