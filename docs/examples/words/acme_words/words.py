"""An application, a route and a page."""

from collections.abc import Callable
from functools import partial

from flask import Blueprint

from flask_noderpc import AppState, Context, NoParams, Route, get_backend
from flask_noderpc.chain.applications.kvstore import KVStore
from flask_noderpc.domain.abci import ExecTxResult
from flask_noderpc.settings import Settings

from .feature import WordsSettings


class Words(KVStore):
    """Takes words of few bytes."""

    name = "words"

    def __init__(self, state: AppState, longest: int) -> None:
        super().__init__(state)
        self._longest = longest

    def check_tx(self, tx: bytes) -> ExecTxResult:
        """Refuse a long word."""
        if len(tx) > self._longest:
            return ExecTxResult(code=1, log=f"a word has at most {self._longest} bytes")
        return super().check_tx(tx)


def words(settings: Settings, path: str, memory: object) -> Callable[[AppState], Words]:
    """Return what makes the application."""
    return partial(Words, longest=settings.of(WordsSettings).words_longest)


def longest(ctx: Context, params: NoParams) -> dict[str, int]:
    """Return the most bytes of a word."""
    return {"bytes": ctx.settings.of(WordsSettings).words_longest}


ROUTES = (Route("longest_word", longest, NoParams, dict),)
words_bp = Blueprint("words", __name__, url_prefix="/words")


@words_bp.get("/")
def overview() -> str:
    """Show the height."""
    return f"<h1>{get_backend().reads.latest_height()} blocks of words</h1>"
