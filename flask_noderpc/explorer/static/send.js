// Sends a transaction to the node's RPC, and shows the response on the page.

const { rpc, evm } = document.body.dataset;
const form = document.getElementById("send-form");
const sent = document.getElementById("sent");
const HEX = /^0x(?:[0-9a-f]{2})*$/i;

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

async function sendToNode(text) {
  const { code, log, hash } = await call(rpc, "broadcast_tx_sync", { tx: base64(text) });
  if (Number(code) !== 0) throw new Error(`the application refused the transaction with code ${code}: ${log}`);
  return hash;
}

const sendToEvm = (text) => call(evm, "eth_sendRawTransaction", [text]);

function say(text, hash) {
  sent.replaceChildren(text);
  if (!hash) return;
  const link = document.createElement("a");
  link.href = form.dataset.tx + encodeURIComponent(hash.replace(/^0x/, ""));
  link.textContent = hash;
  sent.append(" ", link);
}

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = form.elements.tx.value;
  try {
    const isEthereum = form.elements.to?.value === "evm";
    say("Sent:", await (isEthereum ? sendToEvm(text.trim()) : sendToNode(text)));
    form.elements.tx.value = "";
  } catch (error) {
    say(`Not sent: ${error.message}`);
  }
});
