"""Tell a Python that is too old at once; all else is in setup.cfg.

pip before 23.1 looks at ``Requires-Python`` only after it has chosen what an extra needs, and
tries all versions of that for hours.
"""

import sys

from setuptools import setup

if sys.version_info < (3, 11):  # noqa: UP036
    own = ".".join(map(str, sys.version_info[:2]))
    sys.exit(f"flask-noderpc needs Python 3.11 or later; this is Python {own}")

setup()
