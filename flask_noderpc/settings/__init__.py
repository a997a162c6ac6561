"""Every setting, declared once: group, type, default and what it does.

Each field of :class:`Settings` is one setting. Its key in ``app.config`` is
``NODERPC_`` and the field's name in capitals; with
``app.config.from_prefixed_env()`` the environment variable is ``FLASK_`` and
that key. Nothing else in the package reads ``app.config``.
"""

from .kinds import check_chain_id
from .reading import SEE_LIST, no_setting, read_settings, similar_setting
from .table import GROUPS, PREFIX, SETTINGS, Setting, Settings, by_group, settings_of

__all__ = [
    "GROUPS",
    "PREFIX",
    "SEE_LIST",
    "SETTINGS",
    "Setting",
    "Settings",
    "by_group",
    "check_chain_id",
    "no_setting",
    "read_settings",
    "settings_of",
    "similar_setting",
]
