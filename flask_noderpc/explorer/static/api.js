// A form for each method of the node's OpenAPI and OpenRPC documents, and what the node answers.

import { visible } from "./visible.js";

const LONGEST = 100_000;

const { rpc, evm } = document.body.dataset;
const page = document.getElementById("api");
const list = document.getElementById("methods");
const state = document.getElementById("state");
const choice = document.getElementById("by");
const filter = document.getElementById("filter");
const template = document.getElementById("method");
const { openapi } = page.dataset;
const examples = JSON.parse(page.dataset.examples);

// Each returns the methods of one interface: name, summary, parameters, and how one is called.
const INTERFACES = {
  async get() {
    const { paths, servers } = await readJSON(openapi);
    const base = servers[0].url.replace(/\/$/, "");
    return Object.entries(paths).map(([path, { get }]) => ({
      name: get.operationId,
      summary: get.summary,
      params: get.parameters ?? [],
      examples: examples[get.operationId] ?? {},
      request: (values) => ({ url: `${base}${path}${queryOf(values)}` }),
    }));
  },
  rpc: () => discover(rpc, (values) => Object.fromEntries(values)),
  // Ethereum's clients give parameters by position.
  evm: () => discover(evm, (values) => values.map(([, value]) => value)),
};

function queryOf(values) {
  const query = new URLSearchParams(values).toString();
  return query && `?${query}`;
}

async function discover(url, paramsOf) {
  const { methods } = await callMethod(url, "rpc.discover");
  return methods.map(({ name, summary, params }) => ({
    name,
    summary,
    params,
    examples: {},
    request(values) {
      const read = values.map(([param, text]) => [param, valueOf(text, typeOf(params, param))]);
      return { url, body: bodyOf(name, paramsOf(read)) };
    },
  }));
}

const bodyOf = (method, params) => JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });

const typeOf = (params, name) => params.find((param) => param.name === name).schema.type;

// A text needs no quotes; all others are JSON.
function valueOf(text, type) {
  if (type === "string") return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

async function readJSON(url, options) {
  const response = await fetch(url, options);
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
  return response.json();
}

async function callMethod(url, method) {
  const { result, error } = await readJSON(url, post(bodyOf(method, [])));
  if (error) throw new Error([error.message, error.data].filter(Boolean).join(": "));
  return result;
}

const post = (body) => ({
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body,
});

function entryOf(method) {
  const entry = template.content.firstElementChild.cloneNode(true);
  entry.querySelector("code").textContent = method.name;
  entry.querySelector(".summary").textContent = method.summary;
  const form = entry.querySelector("form");
  const button = form.querySelector("button");
  method.params.forEach((param) => button.before(...fieldOf(method, param)));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(method, form, entry.querySelector(".answer"));
  });
  return entry;
}

function fieldOf({ name, examples }, { name: param, description, required, schema, content }) {
  const described = schema ?? content["application/json"].schema;
  const label = document.createElement("label");
  const input = document.createElement("input");
  const note = document.createElement("p");
  input.id = label.htmlFor = `${name}-${param}`;
  note.id = `${input.id}-note`;
  input.name = param;
  input.required = Boolean(required);
  input.spellcheck = false;
  input.autocapitalize = "off";
  input.value = examples[param] ?? "";
  input.setAttribute("aria-describedby", note.id);
  label.textContent = param;
  note.className = "note";
  const rest = [described.type, required ? "required" : "", "default" in described
    ? `default ${described.default}` : ""].flat().filter(Boolean).join(", ");
  note.textContent = `${description} (${rest})`;
  return [label, note, input];
}

// Values that were given; a parameter by position needs all before it.
function valuesOf(form) {
  return [...form.querySelectorAll("input")]
    .map(({ name, value }) => [name, value])
    .filter(([, value]) => value !== "");
}

async function send(method, form, answer) {
  const { url, body } = method.request(valuesOf(form));
  const [command, status, content] = ["command", "status", "content"].map((name) =>
    answer.querySelector(`.${name}`));
  answer.hidden = false;
  command.textContent = visible(curlOf(new URL(url, location).href, body));
  status.textContent = "Sent";
  content.textContent = "";
  const began = performance.now();
  try {
    const response = await fetch(url, body && post(body));
    const text = await response.text();
    const ms = (performance.now() - began).toFixed(0);
    status.textContent =
      `${response.status} ${response.statusText}, ${text.length.toLocaleString("en")} characters, ${ms} ms`;
    content.textContent = visible(shortened(pretty(text)));
  } catch (error) {
    status.textContent = `No answer: ${error.message}`;
  }
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 1);
  } catch {
    return text;
  }
}

const shortened = (text) => (text.length > LONGEST
  ? `${text.slice(0, LONGEST)}… ${text.length - LONGEST} more characters` : text);

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function curlOf(url, body) {
  return body
    ? `curl -H 'Content-Type: application/json' -d ${quoted(body)} ${quoted(url)}`
    : `curl ${quoted(url)}`;
}

async function show() {
  state.textContent = "Loading";
  list.replaceChildren();
  const by = choice.value;
  try {
    const entries = (await INTERFACES[by]()).map(entryOf);
    if (by !== choice.value) return;
    list.replaceChildren(...entries);
    search();
  } catch (error) {
    state.textContent = visible(`The node does not describe this interface: ${error.message}`);
  }
}

function search() {
  const wanted = filter.value.trim().toLowerCase();
  for (const entry of list.children) {
    entry.hidden = !entry.querySelector("summary").textContent.toLowerCase().includes(wanted);
  }
  const shown = [...list.children].filter((entry) => !entry.hidden);
  state.textContent = `${shown.length} methods`;
}

choice.addEventListener("change", show);
filter.addEventListener("input", search);
show();
