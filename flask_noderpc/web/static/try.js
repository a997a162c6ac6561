// Sends the forms of the page, and shows the request and the response as text.

const main = document.getElementById("main");
const { api, url } = main.dataset;
const LONGEST = 200_000;
const NOT_JSON = Symbol();

// Numbers are sent as text, as a node's numbers may be too large for JavaScript.
function jsonOf(field) {
  const text = field.value;
  const types = (field.dataset.types ?? "").split(" ").filter(Boolean);
  const mayBeText = types.length === 0 || types.includes("string");
  if (types.length === 1 && mayBeText) return JSON.stringify(text);
  return mayBeText && parsed(text) === NOT_JSON ? JSON.stringify(text) : text.trim();
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return NOT_JSON;
  }
}

const fieldsOf = (form) => [...form.querySelectorAll("[data-types]")];

function paramsOf(form) {
  if (form.elements.params?.matches("#any-params")) return form.elements.params.value.trim();
  const fields = fieldsOf(form);
  if (api === "evm") {
    const values = fields.map((field) => (field.value === "" ? "null" : jsonOf(field)));
    while (values.at(-1) === "null") values.pop();
    return `[${values.join(",")}]`;
  }
  const given = fields.filter((field) => field.value !== "");
  return `{${given.map((field) => `"${field.name}":${jsonOf(field)}`).join(",")}}`;
}

// Returns the URL of the request and, for a POST, its body.
function requestOf(form) {
  if (api === "get") {
    const given = fieldsOf(form).filter((field) => field.value !== "");
    const query = given.map((field) => `${field.name}=${encodeURIComponent(field.value)}`);
    const path = url + form.dataset.call + (query.length ? `?${query.join("&")}` : "");
    return { address: new URL(path, location).href };
  }
  const method = JSON.stringify(form.dataset.call ?? form.elements.method.value);
  const params = paramsOf(form) || "[]";
  const body = `{"jsonrpc":"2.0","id":1,"method":${method},"params":${params}}`;
  return { address: new URL(url, location).href, body };
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function commandOf({ address, body }) {
  if (body === undefined) return `curl ${quoted(address)}`;
  return `curl ${quoted(address)} -H 'Content-Type: application/json' -d ${quoted(body)}`;
}

// Returns JSON with a line for each member, and other text unchanged.
function indented(text) {
  if (!/^\s*[[{]/.test(text)) return text;
  const parts = text.match(/"(?:[^"\\]|\\.)*"?|[[\]{},:]|[^[\]{},:"\s]+/g) ?? [];
  let depth = 0;
  const line = () => `\n${"  ".repeat(Math.max(depth, 0))}`;
  let out = "";
  parts.forEach((part, index) => {
    const isEmpty = "[{".includes(parts[index - 1]) && "]}".includes(part);
    if ("[{".includes(part)) {
      depth += 1;
      out += part + ("]}".includes(parts[index + 1]) ? "" : line());
    } else if ("]}".includes(part)) {
      depth -= 1;
      out += (isEmpty ? "" : line()) + part;
    } else if (part === ",") {
      out += `,${line()}`;
    } else {
      out += part === ":" ? ": " : part;
    }
  });
  return out;
}

function errorOf(text) {
  const reply = parsed(text);
  const error = reply === NOT_JSON ? null : reply?.error;
  if (!error) return "";
  const data = typeof error.data === "string" ? error.data : "";
  return `Error ${error.code}: ${[error.message, data].filter(Boolean).join(": ")}`;
}

function show(form, status, text, isError) {
  const [place, reply] = [form.querySelector(".status"), form.querySelector(".reply")];
  place.textContent = status;
  place.classList.toggle("bad", isError);
  reply.hidden = text === "";
  reply.textContent = indented(text.slice(0, LONGEST));
  if (text.length > LONGEST) reply.textContent += "\n…";
}

async function send(form) {
  const { address, body } = requestOf(form);
  const options = body === undefined
    ? {}
    : { method: "POST", headers: { "Content-Type": "application/json" }, body };
  show(form, "Sent; waiting for the reply.", "", false);
  const began = performance.now();
  try {
    const response = await fetch(address, options);
    const text = await response.text();
    const took = Math.round(performance.now() - began);
    const facts = `${response.status} ${response.statusText}, ${took} ms, ${text.length} characters.`;
    const error = errorOf(text);
    const cut = text.length > LONGEST ? ` The first ${LONGEST} are shown.` : "";
    show(form, `${facts}${cut} ${error}`.trim(), text, error !== "" || !response.ok);
  } catch (error) {
    show(form, `No reply: ${error.message}`, "", true);
  }
}

function update(form) {
  form.querySelector(".command").textContent = commandOf(requestOf(form));
}

for (const form of main.querySelectorAll("form")) {
  update(form);
  form.addEventListener("input", () => update(form));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    update(form);
    send(form);
  });
}

// Opens the form that the fragment of the URL names.
function open() {
  const found = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (found?.matches("details")) found.open = true;
}

addEventListener("hashchange", open);
open();
