// Remembers the ABIs of contracts in this browser, and shows what a page has of these contracts
// decoded by them. Only the server decodes; a form without this script sends the ABI, too.

const form = document.getElementById("abi-form");
const state = document.getElementById("abi-state");
const forget = document.getElementById("forget-abi");
const [contract, ...others] = new Set((form?.dataset.contracts ?? "").toLowerCase().match(/0x[0-9a-f]{40}/g));
const key = (address) => `noderpc-abi:${form.dataset.chain}:${address}`;

function remembered(address) {
  try {
    return localStorage.getItem(key(address)) ?? "";
  } catch {
    // The browser may not let pages store anything.
    return "";
  }
}

function entries(text) {
  const found = JSON.parse(text);
  return Array.isArray(found) ? found : found.abi;
}

// The ABI of the form's contract, and those of the contracts whose logs are on the page.
function abiOfPage(own) {
  const texts = [own, ...others.map(remembered)].filter(Boolean);
  try {
    return JSON.stringify(texts.flatMap(entries));
  } catch {
    // The server says what is wrong.
    return own;
  }
}

// Sends the form's fields as the browser does, and returns the page of the response.
export async function post(fields, url = location.pathname + location.search) {
  const response = await fetch(url, { method: "POST", body: new URLSearchParams(fields) });
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const reason = page.querySelector("main .reason") ?? page.querySelector("main h1");
  return { page, isGood: response.ok, reason: reason?.textContent ?? response.statusText };
}

// Replaces a part of the page by the same part of a response.
export function replace(old, page) {
  const fresh = page.getElementById(old.id);
  if (fresh) old.replaceWith(document.adoptNode(fresh));
}

async function decode(own) {
  const { page, isGood, reason } = await post({ abi: abiOfPage(own) });
  if (!isGood) throw new Error(reason);
  for (const old of document.querySelectorAll("[data-by-abi]")) replace(old, page);
  const part = document.getElementById("abi-part");
  if (part) part.open = false;
}

function remember(text) {
  try {
    localStorage.setItem(key(contract), JSON.stringify(entries(text)));
    forget.hidden = false;
    return "This browser remembers the ABI.";
  } catch {
    return "This browser can't store the ABI.";
  }
}

async function onSubmit(event) {
  // Other buttons of the form call a method, and some lead to other events.
  if (event.submitter?.hasAttribute("form")) return;
  event.preventDefault();
  const own = form.elements.abi.value;
  try {
    await decode(own);
    state.textContent = contract ? remember(own) : "";
  } catch (error) {
    state.textContent = error.message;
  }
}

async function start() {
  form.addEventListener("submit", onSubmit);
  forget.addEventListener("click", () => {
    localStorage.removeItem(key(contract));
    location.replace(location.pathname + location.search);
  });
  // A page that has an ABI already got it by a form, which another site can send, too.
  if (form.elements.abi.value) return;
  const own = contract ? remembered(contract) : "";
  form.elements.abi.value = own;
  forget.hidden = !own;
  if (!own && !others.some(remembered)) return;
  try {
    await decode(own);
    state.textContent = "Decoded by the ABI that this browser remembers.";
  } catch (error) {
    state.textContent = `The ABI that this browser remembers can't be used: ${error.message}`;
  }
}

if (form) start();
