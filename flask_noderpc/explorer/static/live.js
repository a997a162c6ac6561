// Reloads the live part of a page from the server after each block, or every few seconds. Only
// the server renders rows.

import { follow } from "./connection.js";

const LEAST_MS = 1000;
const POLL_MS = 5000;

const every = Number(document.querySelector("script[data-every]")?.dataset.every ?? 0) * 1000;
const state = document.getElementById("state");
const pause = document.getElementById("pause");

let isPaused = false;
let isBusy = false;
let isDue = false;
let last = -LEAST_MS;

function say(text) {
  if (state.textContent !== text) state.textContent = text;
}

async function refresh() {
  if (isPaused || isBusy || document.hidden) {
    isDue = true;
    return;
  }
  isBusy = true;
  isDue = false;
  try {
    await new Promise((done) => { setTimeout(done, last + LEAST_MS - performance.now()); });
    last = performance.now();
    const response = await fetch(location.href, { cache: "no-store" });
    if (!response.ok) throw new Error(response.statusText);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    if (isPaused) return;
    replace(page.getElementById("live"));
    say("Live");
  } catch {
    say("Reconnecting");
  } finally {
    isBusy = false;
  }
  if (isDue) refresh();
}

function replace(fresh) {
  const live = document.getElementById("live");
  // Don't replace the live part while something in it is selected or unfolded.
  const selection = getSelection();
  if (!selection.isCollapsed && live.contains(selection.anchorNode)) return;
  if (live.querySelector("details[open]")) return;
  const focused = live.contains(document.activeElement)
    ? document.activeElement.getAttribute("href") : null;
  live.replaceWith(document.adoptNode(fresh));
  if (focused) fresh.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
  document.dispatchEvent(new Event("refreshed"));
}

pause.hidden = false;
pause.addEventListener("click", () => {
  isPaused = !isPaused;
  pause.textContent = isPaused ? "Continue" : "Pause";
  if (isPaused) say("Paused");
  else refresh();
});
document.addEventListener("visibilitychange", () => { if (isDue) refresh(); });

function poll(milliseconds) {
  refresh();
  setInterval(refresh, milliseconds);
}

if (every) {
  poll(every);
} else {
  follow("tm.event='NewBlockHeader'", {
    // Refresh the page for events from before the subscription.
    onOpen: refresh,
    onEvent: refresh,
    onClose() { say("Reconnecting"); },
    // Poll if the node refuses, as it has too many subscribers.
    onRefused() { poll(POLL_MS); },
  });
}
