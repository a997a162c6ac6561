"""Commands of the executor processes of the application ``evm``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from ...backends.base.location import location_of, url_store
from ...errors import ConfigurationError
from ...executors.pool import module_command
from ...installation import install_hint
from ...settings import Settings
from ..settings import EthereumSettings

# Niceness of the processes for calls: on a busy machine, the server gets three times the CPU
# share of such a process. With 19, a call would wait up to a second beside a busy process.
_NICENESS = 5


# Libraries without which the modules of an executor process can't be imported, by module.
_LIBRARIES = {
    "eth_hash": "eth-hash",
    "btclib_secp256k1": "btclib-secp256k1",
    "py_arkworks_bls12381": "py-arkworks-bls12381",
}


def check_libraries() -> None:
    """Raise :exc:`~flask_noderpc.errors.ConfigurationError` if a library is missing: an
    executor process would fail with a traceback."""
    for module, name in _LIBRARIES.items():
        if find_spec(module) is None:
            raise ConfigurationError(
                f"NODERPC_APPLICATION = 'evm' needs {name}: {install_hint('evm')}"
            )


def for_calls(store: str, cache_bytes: int, *, is_forked: bool) -> tuple[str, ...]:
    """Return the command of a process that runs calls."""
    return _command(store, cache_bytes, is_forked, _NICENESS, keeps_names=False)


def for_blocks(
    store: str, cache_bytes: int, *, is_forked: bool, keeps_names: bool
) -> tuple[str, ...]:
    """Return the command of a process that runs blocks."""
    return _command(store, cache_bytes, is_forked, 0, keeps_names=keeps_names)


def at_start(settings: Settings, path: str) -> tuple[str, ...]:
    """Return the command of the process that a producer of blocks needs first; raise
    :exc:`~flask_noderpc.errors.ConfigurationError` if a library is missing."""
    check_libraries()
    cache = fork_cache(settings, path)
    is_forked = bool(cache and (settings.of(EthereumSettings).fork_url or cache.exists()))
    return for_blocks(path, settings.cache_bytes, is_forked=is_forked, keeps_names=settings.dev)


def fork_cache(settings: Settings, path: str) -> Path | None:
    """Return the path of the file with the data of a forked chain; ``None`` if the settings
    have no folder for it."""
    own = settings.of(EthereumSettings)
    folder = location_of(path).folder or (settings.home and Path(settings.home))
    return (
        Path(own.fork_cache) if own.fork_cache else (folder and folder / "fork.jsonl") or None
    )


def _command(
    store: str, cache_bytes: int, is_forked: bool, niceness: int, *, keeps_names: bool
) -> tuple[str, ...]:
    return module_command(
        f"{__package__}.executor",
        _absolute(store),
        *map(str, (cache_bytes, int(is_forked), niceness, int(keeps_names))),
    )


def _absolute(store: str) -> str:
    """Return an absolute file name, URI or URL, which does not depend on the current
    directory."""
    if url_store(store):
        return store
    scheme = "file:" if store.startswith("file:") else ""
    return f"{scheme}{Path(store.removeprefix(scheme)).absolute()}"
