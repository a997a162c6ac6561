// Remembers the ABI of a contract in this browser, and fills it in where it is wanted again.

const form = document.getElementById("abi-form");
const key = `noderpc-abi:${form?.dataset.contract}`;

if (form?.dataset.contract) {
  const field = form.elements.abi;
  try {
    if (field.value) localStorage.setItem(key, field.value);
    else field.value = localStorage.getItem(key) ?? "";
  } catch {
    // Storage is full, or the browser allows none.
  }
}
