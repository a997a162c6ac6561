"""A headless Chromium."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from unittest.mock import patch

from .ports import free_port
from .require import require_library, require_program

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


@contextmanager
def chromium(*flags: str) -> Iterator[Chrome]:
    """Run Debian's Chromium, so that Selenium does not look for another one."""
    require_library("selenium")
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    options = ChromeOptions()
    options.binary_location = require_program("chromium")
    for flag in (*FLAGS, *flags):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = ChromeService(require_program("chromedriver"), port=free_port())
    with patch.dict(os.environ, SE_OFFLINE="true"):
        driver = Chrome(options, service)
    try:
        yield driver
    finally:
        driver.quit()
