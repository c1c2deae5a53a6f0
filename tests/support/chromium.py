"""`Chromium`: Debian's browser without a window, driven over a pipe (Chrome DevTools Protocol)."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.timing import HANG_S

__all__ = ["Chromium", "browser", "why_no_browser"]

_COMMAND = "chromium"
_TRACED = "traced"  # follows the last event of a trace
# by key: its place on the keyboard, its number, and the text that it writes
_KEYS = {
    "Enter": ("Enter", 13, "\r"),
    "Escape": ("Escape", 27, ""),
    "Tab": ("Tab", 9, ""),
    "Backspace": ("Backspace", 8, ""),
    "ArrowDown": ("ArrowDown", 40, ""),
    "ArrowUp": ("ArrowUp", 38, ""),
    "ArrowLeft": ("ArrowLeft", 37, ""),
    "ArrowRight": ("ArrowRight", 39, ""),
    "Home": ("Home", 36, ""),
    "End": ("End", 35, ""),
    " ": ("Space", 32, " "),
}


def why_no_browser() -> str | None:
    """The reason why a test that needs a browser cannot run here; None where it can."""
    return None if shutil.which(_COMMAND) else f"there is no `{_COMMAND}`: apt-get install chromium"


@contextmanager
def browser() -> Iterator["Chromium"]:
    """A browser with one empty page."""
    to_browser, to_us = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # the browser reads from its descriptor 3 and writes to 4
        command = (
            f"exec 3<&{to_browser[0]} 4>&{to_us[1]}; exec {_COMMAND} --headless=new --no-sandbox "
            f"--disable-gpu --disable-dev-shm-usage --no-first-run --disable-background-networking "
            f"--disable-quic --disable-component-update --disable-sync "
            f"--user-data-dir={profile} --remote-debugging-pipe about:blank"
        )
        process = subprocess.Popen(
            ["bash", "-c", command],
            pass_fds=(to_browser[0], to_us[1]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser[0])
        os.close(to_us[1])
        try:
            yield Chromium(to_browser[1], to_us[0])
        finally:
            process.kill()
            process.wait()
            os.close(to_browser[1])
            os.close(to_us[0])


class Chromium:
    """One page. requested: the addresses that it has asked for; complaints: what its console says."""

    def __init__(self, writing: int, reading: int) -> None:
        self._writing, self._reading = writing, reading
        self._read = b""
        self._number = 0
        self._session: str | None = None
        self.requested: list[str] = []
        self.complaints: list[str] = []
        self._traced: list[dict[str, Any]] = []
        targets = self._call("Target.getTargets")["targetInfos"]
        page = next(one["targetId"] for one in targets if one["type"] == "page")
        self._session = self._call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self._call(f"{domain}.enable")

    def open(self, url: str) -> None:
        """Go to an address."""
        self._call("Page.navigate", url=url)

    def evaluate(self, script: str) -> Any:
        """The value of an expression of JavaScript in the page."""
        answer = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, script: str, timeout_s: float = HANG_S) -> Any:
        """The value of an expression once it is true in JavaScript's eyes. While the page changes to another
        one, an expression may fail: there is no document.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            failure = None
            try:
                if value := self.evaluate(script):
                    return value
            except AssertionError as error:
                failure = error
            waited = f"not within {timeout_s} s: {script}; {failure or self.complaints}"
            assert time.monotonic() < deadline, waited
            time.sleep(0.1)

    def click(self, selector: str, timeout_s: float = HANG_S) -> None:
        """Press the left button in the middle of the first element that a CSS selector finds."""
        place = self.wait_for(
            f"(() => {{ const found = document.querySelector({json.dumps(selector)}); "
            "if (!found) return null; "
            "found.scrollIntoView({block: 'nearest'}); const box = found.getBoundingClientRect(); "
            "return box.width && {x: box.x + box.width / 2, y: box.y + box.height / 2}; })()",
            timeout_s,
        )
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", type=kind, **place, button="left", clickCount=1)

    def write(self, text: str) -> None:
        """Type a text into the element that has the focus, at once."""
        self._call("Input.insertText", text=text)

    def point(self, kind: str, x: float, y: float, **further: Any) -> None:
        """An event of the mouse at a place: mouseMoved, mousePressed, mouseReleased or mouseWheel."""
        self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **further)

    @contextmanager
    def measured_tasks(self) -> Iterator[list[float]]:
        """The processor time of each task of the page's main thread, in ms; complete at the end. Unlike
        its duration, this does not depend on what else the machine does.
        """
        took: list[float] = []
        self._traced.clear()
        self._call(
            "Tracing.start",
            transferMode="ReportEvents",
            traceConfig={"includedCategories": ["disabled-by-default-devtools.timeline", "__metadata"]},
        )
        yield took
        self._call("Tracing.end")
        while not (self._traced and self._traced[-1].get("name") == _TRACED):
            self._hear(self._next())
        threads = {
            (one["pid"], one["tid"])
            for one in self._traced
            if one["name"] == "thread_name" and one["args"]["name"] == "CrRendererMain"
        }
        took += [
            one["tdur"] / 1000
            for one in self._traced
            if one["name"] == "RunTask" and "tdur" in one and (one["pid"], one["tid"]) in threads
        ]

    def press(self, key: str, *, control: bool = False, shift: bool = False) -> None:
        """Press and release a key, by its name in KeyboardEvent.key."""
        code, number, text = _KEYS.get(key, (f"Key{key.upper()}", ord(key[0].upper()), key))
        told: dict[str, Any] = {
            "key": key,
            "code": code,
            "windowsVirtualKeyCode": number,
            "modifiers": 2 * control + 8 * shift,
        }
        self._call("Input.dispatchKeyEvent", type="keyDown", **told, **({} if control else {"text": text}))
        self._call("Input.dispatchKeyEvent", type="keyUp", **told)

    def allow_clipboard(self, origin: str) -> None:
        """Let pages of an origin read and write the clipboard."""
        permissions = ["clipboardReadWrite", "clipboardSanitizedWrite"]
        self._call("Browser.grantPermissions", origin=origin, permissions=permissions)
        self._call("Emulation.setFocusEmulationEnabled", enabled=True)

    def resize(self, width: int, height: int) -> None:
        """The size of the page in pixels."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def prefer(self, scheme: str) -> None:
        """Whether the system of the browser is "light" or "dark"."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._call("Emulation.setEmulatedMedia", features=features)

    def screenshot(self) -> bytes:
        """A picture of the page, as PNG."""
        return base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"])

    def choose_files(self, selector: str, *paths: str) -> None:
        """Files for an <input type="file">."""
        root = self._call("DOM.getDocument")["root"]["nodeId"]
        found = self._call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self._call("DOM.setFileInputFiles", nodeId=found, files=list(paths))

    def upload_rate(self, bytes_per_second: int | None) -> None:
        """How fast the page can send; None: as fast as it can."""
        self._call(
            "Network.emulateNetworkConditions",
            offline=False,
            latency=0,
            downloadThroughput=-1,
            uploadThroughput=bytes_per_second or -1,
        )

    def strangers(self, *own: str) -> list[str]:
        """The addresses that it has asked for, without those that begin with one of these or hold data."""
        return [one for one in self.requested if not one.startswith((*own, "data:", "blob:", "about:"))]

    def _call(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self._hear(answer)

    def _hear(self, event: dict[str, Any]) -> None:
        told = event.get("params", {})
        if event["method"] == "Network.requestWillBeSent":
            self.requested.append(told["request"]["url"])
        elif event["method"] == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{told['entry']['text']} {told['entry'].get('url', '')}".strip())
        elif event["method"] == "Runtime.exceptionThrown":
            self.complaints.append(str(told["exceptionDetails"]))
        elif event["method"] == "Tracing.dataCollected":
            self._traced += told["value"]
        elif event["method"] == "Tracing.tracingComplete":
            self._traced.append({"name": _TRACED})

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            piece = os.read(self._reading, 1 << 16)
            assert piece, "the browser has ended"
            self._read += piece
        message, _, self._read = self._read.partition(b"\0")
        event: dict[str, Any] = json.loads(message)
        return event
