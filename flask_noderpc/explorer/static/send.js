// Sends transactions to the node's RPC, also those of the faucet, and shows the response on the page.

const { rpc, evm } = document.body.dataset;
const form = document.getElementById("send-form");
const faucet = document.getElementById("faucet-form");
const HEX = /^0x(?:[0-9a-f]{2})*$/i;
const ADDRESS = /^0x[0-9a-f]{40}$/i;
const ETHER = /^[0-9]{1,20}(?:\.[0-9]{1,18})?$/;

function base64(text) {
  const bytes = HEX.test(text)
    ? Uint8Array.from(text.slice(2).match(/../g) ?? [], (digits) => parseInt(digits, 16))
    : new TextEncoder().encode(text);
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}

async function call(url, method, params) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  const { result, error } = await response.json();
  if (error) throw new Error([error.message, error.data].filter(Boolean).join(": "));
  return result;
}

async function sendToNode(method, params) {
  const { code, log, hash } = await call(rpc, method, params);
  if (Number(code) !== 0) {
    const takes = form?.dataset.takes;
    const reason = log || (takes && `it takes ${takes}`);
    throw new Error(`the application refused the transaction with code ${code}${reason ? `: ${reason}` : ""}`);
  }
  return hash;
}

const sendToEvm = (text) => call(evm, "eth_sendRawTransaction", [text]);

// A decimal number of ether as a quantity of wei.
function wei(ether) {
  if (!ETHER.test(ether)) throw new Error(`the amount: expected a number of ether such as 1.5, got '${ether}'`);
  const [whole, fraction = ""] = ether.split(".");
  return `0x${BigInt(whole + fraction.padEnd(18, "0")).toString(16)}`;
}

async function sendEther({ to, coins }) {
  const address = to.value.trim();
  if (!ADDRESS.test(address)) throw new Error(`the address: expected 0x and 40 hex digits, got '${address}'`);
  const value = wei(coins.value.trim());
  const [from] = await call(evm, "eth_accounts", []);
  return call(evm, "eth_sendTransaction", [{ from, to: address, value }]);
}

const sendCoins = ({ to, coins }) =>
  sendToNode("dev_faucet", { address: to.value.trim(), coins: coins.value.trim() });

function say(within, text, hash) {
  const status = within.querySelector("[role=status]");
  status.replaceChildren(text);
  if (!hash) return;
  const link = document.createElement("a");
  link.href = within.dataset.tx + encodeURIComponent(hash.replace(/^0x/, ""));
  link.textContent = hash;
  status.append(" ", link);
}

function onSubmit(within, send) {
  within?.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      say(within, "Sent:", await send(within.elements));
    } catch (error) {
      say(within, `Not sent: ${error.message}`);
    }
  });
}

onSubmit(form, async ({ tx, to }) => {
  const text = tx.value;
  const sent = await (to?.value === "evm" ? sendToEvm(text.trim()) : sendToNode("broadcast_tx_sync", { tx: base64(text) }));
  tx.value = "";
  return sent;
});
onSubmit(faucet, faucet?.dataset.kind === "bank" ? sendCoins : sendEther);
