// Shows the events of a subscription, as text.

import { follow } from "./connection.js";
import { visible } from "./visible.js";

const MOST = 100;
const LONGEST = 20_000;

const log = document.getElementById("log");
const state = document.getElementById("state");
const stop = document.getElementById("stop");
const form = document.getElementById("monitor-form");

let end = () => {};
let count = 0;

function show(result, text) {
  count += 1;
  const entry = document.createElement("details");
  const summary = document.createElement("summary");
  const content = document.createElement("pre");
  const time = new Date().toISOString().slice(11, 23);
  summary.textContent = `${time} ${result.data.type ?? ""} ${heightOf(result)}`;
  const pretty = JSON.stringify(JSON.parse(text).result, null, 1);
  content.textContent = visible(pretty.length > LONGEST
    ? `${pretty.slice(0, LONGEST)}… ${pretty.length - LONGEST} more` : pretty);
  entry.append(summary, content);
  log.prepend(entry);
  while (log.childElementCount > MOST) log.lastElementChild.remove();
}

function heightOf({ data, events }) {
  const height = events?.["tx.height"]?.[0] ?? data.value?.header?.height;
  return height ? `block ${visible(String(height))}` : "";
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  end();
  stop.disabled = false;
  state.textContent = "Connecting";
  end = follow(form.elements.query.value, {
    onOpen() { state.textContent = "Live"; },
    onEvent: show,
    onClose() { state.textContent = "Reconnecting"; },
    onRefused({ message, data }) {
      stop.disabled = true;
      state.textContent = visible(`Refused: ${data || message}`);
    },
  });
});

stop.addEventListener("click", () => {
  end();
  stop.disabled = true;
  state.textContent = `Stopped after ${count} events`;
});

document.getElementById("clear").addEventListener("click", () => {
  log.replaceChildren();
  count = 0;
});
