// Keeps the explorer's lists up to date from the node's websocket.

const { websocket, shown, longest } = document.body.dataset;
const FIRST_DELAY_MS = 250;
const LONGEST_DELAY_MS = 30_000;
const PRINTABLE = /^(?:[^\p{C}\p{Z}]| )*$/u;

// Each list is a table, and the subscription of the same name.
const LISTS = {
  blocks: { query: "tm.event='NewBlock'", row: blockRow, caughtUpTo: 0 },
  txs: { query: "tm.event='Tx'", row: txRow, caughtUpTo: 0 },
};

const byId = (id, page = document) => page.getElementById(id);
const say = (id, text) => { byId(id).textContent = text; };

// Rows: what the node tells goes into copies of the server's own, as text and nothing else.

function blockRow({ block, block_id: { hash } }) {
  const { height } = block.header;
  const row = filledRow("blocks", height, block.data.length, hash);
  const link = row.querySelector("a");
  link.setAttribute("href", link.getAttribute("href") + height);
  return row;
}

function txRow({ TxResult: { height, tx } }) {
  return filledRow("txs", height, shortened(decoded(tx)));
}

function filledRow(list, ...values) {
  const row = byId(`${list}-row`).content.firstElementChild.cloneNode(true);
  values.forEach((value, column) => {
    const cell = row.cells[column];
    (cell.firstElementChild ?? cell).textContent = value;
  });
  return row;
}

// Text where it is some, as Python's isprintable says, and hex of all else.
function decoded(base64) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  // What is not UTF-8 has become this character.
  if (PRINTABLE.test(text) && !text.includes("\uFFFD")) return text;
  return `0x${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

// As Jinja's truncate, which counts code points.
function shortened(text) {
  const characters = Array.from(text);
  return characters.length > longest ? `${characters.slice(0, longest - 1).join("")}…` : text;
}

// Lists.

const heightOf = (row) => Number(row?.cells[0].textContent ?? 0);

function add(list, value) {
  const row = LISTS[list].row(value);
  if (heightOf(row) <= LISTS[list].caughtUpTo) return;
  const table = byId(list);
  // Below the names of the columns.
  table.rows[0].after(row);
  if (table.rows.length - 1 > shown) table.deleteRow(-1);
}

function replaceLists(page) {
  for (const list of Object.keys(LISTS)) {
    const table = byId(list, page);
    byId(list).replaceWith(table);
    LISTS[list].caughtUpTo = heightOf(table.rows[1]);
  }
}

async function fetchPage(options) {
  const response = await fetch(location.pathname, options);
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
  return new DOMParser().parseFromString(await response.text(), "text/html");
}

// The connection.

function follow(delay = FIRST_DELAY_MS) {
  const socket = new WebSocket(address());
  const unanswered = new Set(Object.keys(LISTS));
  let subscribed;
  const caughtUp = new Promise((resolve) => { subscribed = resolve; }).then(catchUp);

  // What came before the subscriptions is on a fresh page; what they tell waits for it.
  async function catchUp() {
    try {
      const page = await fetchPage();
      if (socket.readyState !== WebSocket.OPEN) return;
      replaceLists(page);
      say("state", "live");
      delay = FIRST_DELAY_MS;
    } catch {
      socket.close();
    }
  }

  socket.onopen = () => {
    for (const [id, { query }] of Object.entries(LISTS)) {
      const call = { jsonrpc: "2.0", id, method: "subscribe", params: { query } };
      socket.send(JSON.stringify(call));
    }
  };
  socket.onmessage = ({ data }) => {
    const { id, result, error } = JSON.parse(data);
    // Refused, or told that it fell behind.
    if (error) socket.close();
    else if (result.data) caughtUp.then(() => add(id, result.data.value));
    else if (unanswered.delete(id) && !unanswered.size) subscribed();
  };
  socket.onclose = () => {
    say("state", "reconnecting");
    setTimeout(follow, delay, Math.min(2 * delay, LONGEST_DELAY_MS));
  };
}

function address() {
  // The app knows the path; the browser knows the host, and whether it is reached by TLS.
  const url = new URL(new URL(websocket, location).pathname, location);
  url.protocol = location.protocol.replace("http", "ws");
  return url;
}

// The form.

async function send(event) {
  event.preventDefault();
  const form = event.target;
  try {
    const body = new URLSearchParams(new FormData(form));
    const page = await fetchPage({ method: "POST", body });
    say("message", byId("message", page).textContent);
    form.reset();
  } catch (error) {
    say("message", error.message);
  }
}

// A chain of Ethereum has none.
document.querySelector("form")?.addEventListener("submit", send);
follow();
