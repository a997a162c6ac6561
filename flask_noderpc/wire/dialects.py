"""Registry of the dialects by name."""

from __future__ import annotations

from ..errors import InvalidSetting
from .comet.v034 import COMET_034
from .comet.v037 import COMET_037
from .comet.v038 import COMET_038
from .comet.v039 import COMET_039, COMET_040
from .comet.v1 import COMET_1
from .dialect import Dialect
from .document import DOCUMENT

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        DOCUMENT,
        COMET_034,
        COMET_037,
        COMET_038,
        COMET_039,
        COMET_040,
        COMET_1,
    )
}


def dialect_named(name: str, setting: str = "NODERPC_DIALECT") -> Dialect:
    """Return the dialect of a setting; raise
    :exc:`~flask_noderpc.errors.ConfigurationError` if it is not known."""
    try:
        return DIALECTS[name]
    except KeyError:
        known = ", ".join(DIALECTS)
        raise InvalidSetting(f"{setting} = {name!r}: known are {known}") from None
