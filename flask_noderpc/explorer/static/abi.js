// Stores the ABI of a contract in this browser, and fills it in on later pages of the contract.

const form = document.getElementById("abi-form");
const key = `noderpc-abi:${form?.dataset.contract}`;

if (form?.dataset.contract) {
  const field = form.elements.abi;
  try {
    if (field.value) localStorage.setItem(key, field.value);
    else field.value = localStorage.getItem(key) ?? "";
  } catch {
    // Ignore the error if the storage is full or disabled.
  }
}
