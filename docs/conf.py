from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "flask-noderpc"
copyright = "2026, the flask-noderpc authors"
extensions = ["sphinx.ext.autodoc", "sphinx.ext.intersphinx", "tables"]
html_theme = "furo"
autodoc_typehints = "description"
autodoc_member_order = "bysource"
# The build needs no network: names of other projects stay plain text.
intersphinx_mapping: dict[str, tuple[str, str | None]] = {}
# Annotations name what this page does not document: the standard library, Flask, and the
# domain's dataclasses, which are documented where they stand.
nitpick_ignore_regex = [
    (
        "py:class",
        r"(flask|msgspec|decimal|http|collections|contextlib|pathlib|os|types|typing|abc)\..*",
    ),
    (
        "py:class",
        r"(Flask|Blueprint|Path|optional|Any|Callable|Changes|ABC|PathLike|P|~?T|Authorize|Policy"
        r"|Dispatcher|Registry|Response|Location|Engine|ProcessHandles"
        r"|CoreSettings|Activation|flask_noderpc\.concurrency\.T"
        r"|flask_noderpc\.ethereum\.domain\.forks\.Activation)",
    ),
    (
        "py:class",
        r"flask_noderpc\.(domain|settings|lru|protocol|jsonrpc|wire|chain|backends|web\.rules)\..*",
    ),
    (
        "py:class",
        r"(AppInfo|BlockResults|BlockID|BlockMeta|Block|Commit|ConsensusParams|Evidence|Event"
        r"|Genesis|Lease|NetInfo|NodeInfo|PendingCount|PendingTxs|PublicKey|QueryResult|ExecTxResult|TxResult"
        r"|ValidatorSet|ValidatorUpdate|ConsensusParamsUpdate|Params|DuplicateVoteEvidence|Home|Dialect)",
    ),
    ("py:class", r"AppState|BlockInfo|Branch|GasMeter|Handler|Handle|Head|Method|Module|Node"),
    ("py:exc", "TxError"),
    (
        "py:class",
        r"flask_noderpc\.cosmos\.(bank\.(gas|state|consensus|genesis_json|queries)|protocol)\..*",
    ),
    ("py:meth", r"Producer\..*"),
]
