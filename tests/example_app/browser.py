"""A headless Chromium, and the explorer's page in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from ..helpers.ports import free_port
from ..helpers.require import require_library, require_program
from ..helpers.until import until

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


@contextmanager
def chromium(*flags: str) -> Iterator[Chrome]:
    """Debian's Chromium; Selenium looks for no other."""
    require_library("selenium")
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    options = ChromeOptions()
    options.binary_location = require_program("chromium")
    for flag in (*FLAGS, *flags):
        options.add_argument(flag)
    service = ChromeService(require_program("chromedriver"), port=free_port())
    with patch.dict(os.environ, SE_OFFLINE="true"):
        driver = Chrome(options, service)
    try:
        yield driver
    finally:
        driver.quit()


# A new document has no such variable, so it also tells a reload.
_WATCH = """
window.states = [];
const watch = new MutationObserver(() => states.push(state.textContent));
watch.observe(state, {childList: true});
"""


class Page:
    """The explorer, as its reader sees it."""

    def __init__(self, driver: Chrome, url: str) -> None:
        self._driver = driver
        driver.get(url + "/explorer")
        driver.execute_script(_WATCH)

    def until(self, holds: Callable[[], bool], what: str) -> None:
        until(holds, what)

    def until_live(self) -> None:
        self.until(lambda: self.text("state") == "live", "live")

    def text(self, name: str) -> str:
        return self._driver.find_element("id", name).text

    def rows(self, table: str) -> list[str]:
        """The HTML of a table's rows, without the names of its columns."""
        return self._list(f"[...{table}.rows].slice(1).map(row => row.outerHTML)")

    def heights(self) -> list[int]:
        """Of the blocks that are shown."""
        rows = "[...blocks.rows].slice(1)"
        return self._list(f"{rows}.map(row => Number(row.cells[0].textContent))")

    def states(self) -> list[str]:
        """What the page has said of its connection since it was opened."""
        return self._list("states")

    def is_reloaded(self) -> bool:
        return bool(self._driver.execute_script("return !window.states"))

    def _list(self, expression: str) -> list[Any]:
        found: list[Any] = self._driver.execute_script(f"return {expression}")
        return found

    def send(self, name: str, value: str) -> None:
        """Fill in the form."""
        self._driver.find_element("name", "name").send_keys(name)
        self._driver.find_element("name", "value").send_keys(value)
        self._driver.find_element("css selector", "form button").click()

    def reload(self) -> None:
        self._driver.refresh()

    def leave(self) -> None:
        self._driver.get("about:blank")
