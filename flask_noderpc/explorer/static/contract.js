// Calls methods of a contract without leaving the page, and sends transactions with the wallet in
// the browser (EIP-1193).

import { post, replace } from "./abi.js";

const form = document.getElementById("abi-form");

// The fields of one function, as there may be more in all than the server reads.
function fieldsOf(button) {
  const shared = ["abi", "height", "from"];
  const fields = [...new FormData(form)].filter(
    ([name]) => shared.includes(name) || name.startsWith(`${button.value}.`),
  );
  return [...fields, [button.name, button.value]];
}

async function call(button) {
  const outcome = document.getElementById(`outcome-${button.value}`);
  button.disabled = true;
  outcome.replaceChildren("Waiting for the node …");
  try {
    const { page, reason } = await post(fieldsOf(button));
    const fresh = page.getElementById(outcome.id);
    if (!fresh) throw new Error(reason);
    outcome.replaceChildren(...document.adoptNode(fresh).childNodes);
    offerWallet(outcome);
    // The block of a transaction may already have its events.
    if (button.name === "send") replace(document.getElementById("event-list"), page);
  } catch (error) {
    outcome.replaceChildren(error.message);
  } finally {
    button.disabled = false;
    button.focus();
  }
}

function offerWallet(within) {
  if (!window.ethereum) return;
  for (const button of within.querySelectorAll("[data-wallet]")) button.hidden = false;
}

async function sendByWallet({ chainId, to, data, value }) {
  const wallet = window.ethereum;
  const [from] = await wallet.request({ method: "eth_requestAccounts" });
  const chain = await wallet.request({ method: "eth_chainId" });
  if (BigInt(chain) !== BigInt(chainId)) {
    throw new Error(`the wallet is connected to the chain ${BigInt(chain)}; switch it to ${BigInt(chainId)}, the chain of this contract`);
  }
  // With the chain's ID the wallet refuses if it is switched meanwhile.
  const transaction = { from, to, data, value, chainId };
  return wallet.request({ method: "eth_sendTransaction", params: [transaction] });
}

async function onWallet(button) {
  const outcome = button.closest("[role=status]");
  button.disabled = true;
  const said = outcome.querySelector(".said") ?? outcome.appendChild(document.createElement("p"));
  said.className = "said";
  try {
    const hash = await sendByWallet(JSON.parse(button.dataset.wallet));
    const link = document.createElement("a");
    link.href = form.dataset.tx + encodeURIComponent(String(hash).replace(/^0x/, ""));
    link.textContent = hash;
    said.replaceChildren("Sent: ", link);
  } catch (error) {
    // A wallet may throw objects that are no errors.
    said.replaceChildren(`Not sent: ${error?.message ?? error}`);
  } finally {
    button.disabled = false;
  }
}

form.addEventListener("submit", (event) => {
  const button = event.submitter;
  if (!button?.closest("[data-function]")) return;
  event.preventDefault();
  call(button);
});
// Enter in a field would press the first button of the whole form, which is for another ABI.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.target.form !== form || !event.target.matches("input, select")) return;
  event.preventDefault();
  event.target.closest("[data-function]")?.querySelector(".buttons button").click();
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-wallet]");
  if (button) onWallet(button);
});
offerWallet(document);
