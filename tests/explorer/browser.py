"""Pages in a browser, with a reader's actions."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..faults.processes import is_long
from ..helpers.require import skip_or_fail
from ..helpers.until import PATIENCE, until

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

SCREENS = ((1280, "light"), (390, "dark"), (1280, "dark"), (390, "light"))
"""Widths and colour schemes of screens."""

AXE = Path(__file__).parent / "axe" / "node_modules" / "axe-core" / "axe.min.js"

_RUN_AXE = """
const done = arguments[arguments.length - 1];
axe.run(document, {preload: false, resultTypes: ["violations"]}).then(
  ({violations}) => done(violations.map(({id, impact, help, nodes}) =>
    [impact, id, help, nodes.map((node) => [node.target.join(" "), node.failureSummary])])),
  (error) => done([["critical", "axe", String(error), []]]));
"""
# A script that returns the beginnings of elements that end right of the window, without those
# that an element around them cuts off or scrolls.
_STICKING_OUT = """
const root = document.documentElement, width = root.clientWidth;
const isCut = (element) => element && (getComputedStyle(element).overflowX !== "visible"
  || isCut(element.parentElement));
const found = [...document.querySelectorAll("body *")].filter((element) =>
  element.getBoundingClientRect().right > width + 0.5 && !isCut(element.parentElement));
return [...(root.scrollWidth > width ? [root] : []), ...found]
  .map((element) => element.outerHTML.slice(0, 100));
"""


def screens() -> Sequence[tuple[int, str]]:
    """Return all screens for pictures and in the long campaign, otherwise only some, with each
    width and each scheme once."""
    return SCREENS if is_long() or "NODERPC_SCREENSHOTS" in os.environ else SCREENS[:2]


@cache
def axe() -> str:
    """Return the source of axe-core."""
    if not AXE.is_file():
        skip_or_fail("axe-core is not installed: run `npm ci` in tests/explorer/axe")
    return AXE.read_text()


class Reader:
    """A browser at the pages of one server."""

    def __init__(self, driver: Chrome, url: str, base: str = "/explorer") -> None:
        self.driver = driver
        self._base = url + base
        driver.set_script_timeout(PATIENCE)

    def open(self, path: str) -> None:
        """Open a page below the base."""
        self.driver.get(self._base + path)

    @contextmanager
    def screen(self, width: int, scheme: str = "light") -> Iterator[None]:
        """Emulate a screen of this width, with a light or a dark scheme."""
        is_phone = width < 600
        size = {"width": width, "height": 844 if is_phone else 900, "deviceScaleFactor": 1}
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        command = self.driver.execute_cdp_cmd
        command("Emulation.setDeviceMetricsOverride", {**size, "mobile": is_phone})
        command("Emulation.setEmulatedMedia", {"features": features})
        try:
            yield
        finally:
            command("Emulation.clearDeviceMetricsOverride", {})
            command("Emulation.setEmulatedMedia", {"features": []})

    def screenshot(self, file: Path) -> None:
        """Write the whole page as a picture."""
        found = self.driver.execute_cdp_cmd(
            "Page.captureScreenshot", {"captureBeyondViewport": True}
        )
        file.write_bytes(base64.b64decode(found["data"]))

    def faults(self) -> list[Any]:
        """Return the serious and critical faults that axe finds on the page."""
        self.driver.execute_script(axe())
        found = self.driver.execute_async_script(_RUN_AXE)
        return [fault for fault in found if fault[0] in ("serious", "critical")]

    def sticking_out(self) -> list[str]:
        """Return the elements that are wider than the window, or end right of it."""
        found: list[str] = self.driver.execute_script(_STICKING_OUT)
        return found

    def complaints(self) -> list[str]:
        """Return the messages in the browser's console since the last call."""
        log = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [entry["message"] for entry in log]

    def text(self, selector: str = "main") -> str:
        """Return the text of the first element."""
        return self.driver.find_element("css selector", selector).text

    def until_text(self, text: str, selector: str = "main") -> None:
        """Wait until an element has a text."""

        def has() -> bool:
            # An element may be replaced while it is read.
            found = self.script(
                "return document.querySelector(arguments[0])?.innerText ?? ''", selector
            )
            return text in found

        until(has, f"{text} in {selector}")

    def until_live(self) -> None:
        """Wait until the page follows the chain."""
        self.until_text("Live", "#state")

    def click(self, selector: str) -> None:
        """Click the first element."""
        self.driver.find_element("css selector", selector).click()

    def write(self, selector: str, text: str) -> None:
        """Replace the content of a field."""
        field = self.driver.find_element("css selector", selector)
        field.clear()
        field.send_keys(text)

    def script(self, script: str, *given: object) -> Any:
        """Return the value of a script."""
        return self.driver.execute_script(script, *given)

    def leave(self) -> None:
        """Leave the page, which would otherwise reconnect while its server ends."""
        self.driver.get("about:blank")
