"""The form of a node's JSON: where it differs from what the schemas make of the same values.

Go keeps null, empty and absent apart, and forks of CometBFT add members or leave some out. A
domain value has none of that. A result that was decoded keeps the difference beside its values,
as ``form``; it is applied when the same dialect encodes the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from .. import jsoncodec
from ..domain.abci import BlockResults, ExecTxResult
from ..domain.responses import ResultBlock, ResultBlockSearch, ResultTx, ResultTxSearch
from .fields import Json

Patch = dict[str, Any]
"""What changes in a value: ``{"value": …}`` replaces it, ``{"from": name}`` takes the value of
another member, ``{"items": {position: patch}}`` changes a list, and
``{"members": {name: patch}}`` an object, with all its names as ``"order"`` if the schema has
others."""

_TXS = "txs_results"


# Differences.


def difference(own: Json, found: Json) -> Patch | None:
    """Return the patch that makes ``found`` of ``own``; ``None`` if both are the same JSON."""
    if isinstance(own, dict) and isinstance(found, dict):
        renamed = {name: own[name] for name in own.keys() - found.keys()}
        changed = {
            name: difference(own[name], value) if name in own else _added(value, renamed)
            for name, value in found.items()
        }
        members = {name: patch for name, patch in changed.items() if patch is not None}
        # A proxy may sort the members, which changes nothing.
        if own.keys() != found.keys():
            return {"members": members, "order": list(found)}
        return {"members": members} if members else None
    if isinstance(own, list) and isinstance(found, list) and len(own) == len(found):
        patches = map(difference, own, found)
        items = {str(i): patch for i, patch in enumerate(patches) if patch is not None}
        return {"items": items} if items else None
    return None if type(own) is type(found) and own == found else {"value": found}


def _added(value: Json, renamed: dict[str, Json]) -> Patch:
    for name, other in sorted(renamed.items()):
        if value and value == other:
            return {"from": name}
    return {"value": value}


def patched(own: Json, patch: Patch) -> Json:
    """Return JSON with a patch; unchanged where it is not of the patch's shape."""
    if "value" in patch:
        return patch["value"]
    if "items" in patch and isinstance(own, list):
        for position, each in patch["items"].items():
            if int(position) < len(own):
                own[int(position)] = patched(own[int(position)], each)
    elif "members" in patch and isinstance(own, dict):
        members = patch["members"]
        names = patch.get("order", own)
        return {
            name: _patched_member(own, name, members[name]) if name in members else own[name]
            for name in names
            if name in members or name in own
        }
    return own


def _patched_member(own: dict[str, Json], name: str, patch: Patch) -> Json:
    return own.get(patch["from"]) if "from" in patch else patched(own.get(name), patch)


# The results that have forms.


def has_form(result: type) -> bool:
    """Return true if decoded results of a class keep their form."""
    return result in _TAKEN


def with_form(result: Any, dialect: str, own: Json, found: Json) -> Any:
    """Return a result that was decoded from JSON with the form of that; ``own`` is how its
    dialect encodes it."""
    if own.get("app_hash", "") is None:
        # A store has the hash from the next header, and no node has a number in its place.
        own = {**own, "app_hash": 0}
    try:
        patch = None if own == found else difference(own, found)
        return result if patch is None else _TAKEN[type(result)](result, dialect, patch)
    except (RecursionError, OverflowError, ValueError):
        # A caller of ``Dialect.load`` may give objects that no text of JSON can hold.
        return result


def _block_results(result: BlockResults, dialect: str, patch: Patch) -> BlockResults:
    txs = _inner(patch, _TXS).pop("items", {})
    found = tuple(
        _tx_result(each, dialect, txs.get(str(position)))
        for position, each in enumerate(result.tx_results)
    )
    if not _inner(patch, _TXS):
        patch.get("members", {}).pop(_TXS, None)
    own = _packed(dialect, patch) if any(patch.values()) else b""
    return replace(result, tx_results=found if txs else result.tx_results, form=own)


def _inner(patch: Patch, name: str) -> Patch:
    found: Patch = patch.get("members", {}).get(name, {})
    return found


def _tx_result(result: ExecTxResult, dialect: str, patch: Patch | None) -> ExecTxResult:
    return replace(result, form=_packed(dialect, patch)) if patch else result


def _block(result: ResultBlock, dialect: str, patch: Patch) -> ResultBlock:
    if result.block is None:
        return result
    return replace(result, block=replace(result.block, form=_packed(dialect, patch)))


def _tx(result: ResultTx, dialect: str, patch: Patch) -> ResultTx:
    own = _inner(patch, "tx_result")
    return replace(result, tx_result=_tx_result(result.tx_result, dialect, own))


def _packed(dialect: str, patch: Patch) -> bytes:
    return jsoncodec.encode([dialect, patch])


_TAKEN: dict[type, Callable[[Any, str, Patch], Any]] = {
    BlockResults: _block_results,
    ResultBlock: _block,
    ResultTx: _tx,
}


def in_form(result: Any, dialect: str, own: Json) -> Json:
    """Return the JSON of a result in the form that a node of the dialect gave it."""
    for path, form in _FORMS.get(type(result), _no_forms)(result):
        if form:
            name, patch = jsoncodec.decode(form)
            own = _at(own, path, patch) if name == dialect else own
    return own


def _at(own: Json, path: tuple[str | int, ...], patch: Patch) -> Json:
    if not path:
        return patched(own, patch)
    own[path[0]] = _at(own[path[0]], path[1:], patch)
    return own


_Forms = Iterator[tuple[tuple[str | int, ...], bytes]]


def _no_forms(result: object) -> _Forms:
    return iter(())


def _forms_of_results(result: BlockResults) -> _Forms:
    for position, each in enumerate(result.tx_results):
        if each.form:
            yield (_TXS, position), each.form
    yield (), result.form


def _forms_of_block(result: ResultBlock) -> _Forms:
    yield (), result.block.form if result.block else b""


def _forms_of_blocks(result: ResultBlockSearch) -> _Forms:
    for position, each in enumerate(result.blocks):
        yield ("blocks", position), each.block.form if each.block else b""


def _forms_of_tx(result: ResultTx) -> _Forms:
    yield ("tx_result",), result.tx_result.form


def _forms_of_txs(result: ResultTxSearch) -> _Forms:
    for position, each in enumerate(result.txs):
        yield ("txs", position, "tx_result"), each.tx_result.form


_FORMS: dict[type, Callable[[Any], _Forms]] = {
    BlockResults: _forms_of_results,
    ResultBlock: _forms_of_block,
    ResultBlockSearch: _forms_of_blocks,
    ResultTx: _forms_of_tx,
    ResultTxSearch: _forms_of_txs,
}
