// What the scripts beside this have in common:
//
//     node SCRIPT URL TRANSFER EMITTING [MANY]
//
// URL is of a node that has the three blocks of tests/ethereum/rpc/chain.py; the others are signed
// transactions that it has not, MANY with commas between them. Each step prints what it has read, the same in every script.
"use strict";

const [url, transfer, emitting, many = ""] = process.argv.slice(2);

const CONTRACT = "0x1095" + "0".repeat(35) + "1";
const TOPIC = "0x" + "aa".repeat(32);
const UNKNOWN = "0x" + "ee".repeat(32);

const plain = (_, value) => (typeof value === "bigint" ? Number(value) : value);
const small = (text) => (text == null ? null : text.toLowerCase());

async function step(name, work) {
  try {
    const shown = await work();
    console.log(JSON.stringify({ step: name, shown }, plain));
    return shown;
  } catch (error) {
    console.error(`${name}: ${error && error.stack}`);
    process.exit(1);
  }
}

/** A promise and the functions that settle it; rejected where it takes too long. */
function awaited(what) {
  const made = {};
  made.promise = new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no ${what} in 100 seconds`)), 100_000);
    made.resolve = (value) => {
      clearTimeout(timer);
      resolve(value);
    };
    made.reject = reject;
  });
  return made;
}

/** What `ask` gives, once it gives anything; the test has the deadline. */
async function until(ask) {
  for (;;) {
    const found = await ask();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const constants = { url, transfer, emitting, many: many.split(","), CONTRACT, TOPIC, UNKNOWN };
module.exports = { ...constants, step, small, awaited, until };
