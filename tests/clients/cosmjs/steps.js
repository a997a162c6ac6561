// What the scripts beside share: which node and client they are about, and how a step is told.
//
//     node SCRIPT URL CLIENT
//
// CLIENT is the class that connectComet() has to choose, but for versions it does not know.
"use strict";

const assert = require("node:assert/strict");
const { createHash } = require("node:crypto");
const rpc = require("@cosmjs/tendermint-rpc");

const [url, wanted] = process.argv.slice(2);
const bytes = (text) => new TextEncoder().encode(text);
const sha256 = (value) => new Uint8Array(createHash("sha256").update(value).digest());
const Client = rpc[wanted];

async function step(name, work) {
  try {
    const shown = await work();
    console.log(JSON.stringify({ step: name, shown: shown === undefined ? "ok" : String(shown) }));
    return shown;
  } catch (error) {
    console.error(`${wanted} ${name}: ${error && error.stack}`);
    process.exit(1);
  }
}

/** The first `count` values of a stream; rejects where they take too long. */
function first(stream, count) {
  return new Promise((resolve, reject) => {
    const found = [];
    const deadline = setTimeout(() => reject(new Error(`only ${found.length} came`)), 100_000);
    const subscription = stream.subscribe({
      next: (value) => {
        found.push(value);
        if (found.length === count) {
          clearTimeout(deadline);
          subscription.unsubscribe();
          resolve(found);
        }
      },
      error: reject,
    });
  });
}

/** Resolves once something holds. */
async function until(holds, what) {
  const deadline = Date.now() + 100_000;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`not within 100 s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** CosmJS 0.39 knows neither 0.39 nor 0.40, and takes them for 0.34. */
const isTakenForOld = (version) => /^0\.(39|40)\./.test(version);

module.exports = { Client, bytes, first, isTakenForOld, rpc, sha256, step, until, url, wanted };
