// Filters as each library makes and polls them:
//
//     node SCRIPT URL TRANSFER EMITTING
//
// URL is of a node as in ../helpers.js, which makes a block when `block` asks for one.
"use strict";

const helpers = require("../helpers");
const { transfer, emitting, step } = helpers;

/** Asks for a block; settled when it is made. */
const block = () =>
  new Promise((resolve) => {
    process.stdin.once("data", resolve);
    console.log(JSON.stringify({ step: "block" }));
  });

/**
 * The life of three filters. `make` gives the functions that make them, `log` shows one, and
 * the others are those of the library.
 */
async function live({ make, changes, logs, uninstall, send, log }) {
  const filters = {};
  for (const [kind, made] of Object.entries(make)) filters[kind] = await made();
  const polled = async () => {
    const found = {};
    for (const [kind, filter] of Object.entries(filters)) found[kind] = await changes(filter);
    return { ...found, logs: found.logs.map(log) };
  };
  await step("at first", polled);
  await send(transfer);
  await step("a transaction waits", polled);
  await block();
  await send(emitting);
  await block();
  await step("two blocks later", polled);
  await step("afterwards", polled);
  await step("all logs", async () => (await logs(filters.logs)).map(log));
  await step("uninstalled", () => Promise.all(Object.values(filters).map((own) => uninstall(own))));
  await step("polled once more", async () => {
    const error = await changes(filters.blocks).catch((e) => e);
    return /filter not found/.test(said(error)) || said(error);
  });
}

const said = (error) =>
  [error.message, error.details, error.error && error.error.message, error.cause && said(error.cause)]
    .filter(Boolean)
    .join(" ");

module.exports = { ...helpers, block, live };
