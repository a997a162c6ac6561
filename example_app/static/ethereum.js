// The latest Ethereum transactions with their receipts and logs, read by Ethereum's JSON-RPC.

const { rpc, websocket, shown } = document.body.dataset;
const FIRST_DELAY_MS = 250;
const LONGEST_DELAY_MS = 30_000;
// How many blocks are looked through for transactions.
const BLOCKS = 50;
const WEI = 10n ** 18n;

const byId = (id) => document.getElementById(id);
const hex = (number) => `0x${number.toString(16)}`;

// All calls in one request; each gives its result, or the page says why not.
async function call(...calls) {
  const body = calls.map(([method, ...params], id) => ({ jsonrpc: "2.0", id, method, params }));
  const response = await fetch(rpc, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${response.status} ${response.statusText}`);
  const replies = await response.json();
  return replies.sort((a, b) => a.id - b.id).map(({ result, error }) => {
    if (error) throw new Error(error.message);
    return result;
  });
}

// Rows: what the chain says goes in as text and nothing else.

function filled(template, values) {
  const row = byId(template).content.firstElementChild.cloneNode(true);
  const cells = row.querySelectorAll("td");
  values.forEach((value, at) => {
    (cells[at].querySelector("code") ?? cells[at]).textContent = value;
  });
  return row;
}

function ether(wei) {
  const rest = (wei % WEI).toString().padStart(18, "0").replace(/0+$/, "");
  return rest ? `${wei / WEI}.${rest}` : `${wei / WEI}`;
}

function transactionRow(tx, receipt) {
  const status = receipt.status === "0x1" ? "success" : "failed";
  const to = tx.to ?? `creates ${receipt.contractAddress}`;
  const row = filled("row", [
    Number(tx.blockNumber), tx.hash, tx.from, to, ether(BigInt(tx.value)), Number(receipt.gasUsed), status,
  ]);
  const details = row.querySelector("details");
  const input = document.createElement("p");
  input.className = "input";
  input.textContent = `input ${tx.input}`;
  details.append(input, ...receipt.logs.map(logTable));
  return row;
}

const logTable = ({ logIndex, address, topics, data }) =>
  filled("log", [Number(logIndex), address, topics.join(" "), data]);

// The list.

let newest = -1;

async function show(height) {
  const first = Math.max(0, newest + 1, height - BLOCKS + 1);
  if (height < first) return;
  newest = height;
  const numbers = Array.from({ length: height - first + 1 }, (_, at) => hex(first + at));
  const blocks = await call(...numbers.map((number) => ["eth_getBlockByNumber", number, true]));
  const full = blocks.filter((block) => block?.transactions.length);
  if (!full.length) return;
  const receipts = await call(...full.map(({ number }) => ["eth_getBlockReceipts", number]));
  const body = document.querySelector("#transactions tbody");
  full.forEach((block, at) => block.transactions.forEach((tx, index) => {
    body.prepend(transactionRow(tx, receipts[at][index]));
  }));
  while (body.rows.length > shown) body.deleteRow(-1);
}

// The connection: one block after the other, each read when the last is shown.

let work = Promise.resolve();

function later(job) {
  work = work.then(job).catch((error) => { byId("state").textContent = error.message; });
}

function follow(delay = FIRST_DELAY_MS) {
  const url = new URL(new URL(websocket, location).pathname, location);
  url.protocol = location.protocol.replace("http", "ws");
  const socket = new WebSocket(url);
  socket.onopen = () => {
    const subscribe = { jsonrpc: "2.0", id: 1, method: "eth_subscribe", params: ["newHeads"] };
    socket.send(JSON.stringify(subscribe));
  };
  socket.onmessage = ({ data }) => {
    const { id, error, params } = JSON.parse(data);
    if (error) socket.close();
    else if (id === 1) {
      later(async () => {
        const [height] = await call(["eth_blockNumber"]);
        await show(Number(height));
        byId("state").textContent = "live";
        delay = FIRST_DELAY_MS;
      });
    } else later(() => show(Number(params.result.number)));
  };
  socket.onclose = () => {
    byId("state").textContent = "reconnecting";
    setTimeout(follow, delay, Math.min(2 * delay, LONGEST_DELAY_MS));
  };
}

follow();
