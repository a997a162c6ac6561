// What the scripts beside this have in common:
//
//     node SCRIPT URL ACCOUNT [KEY]
//
// ACCOUNT is an account of the node that nobody else uses; the script signs with KEY where there
// is one, and has the node sign otherwise. Each step prints what it has seen, the same in every
// script. The contract is Counter.sol.
"use strict";

const { step, awaited } = require("../helpers");
const { abi, bytecode } = require("./Counter.json");

const [url, account, key] = process.argv.slice(2);
const FIRST = 7n;
const QUICK = [0, 1, 2, 3, 4];
const NOBODY = "0x" + "99".repeat(20);

/** An event as every script shows it. */
const added = (by, amount, total) => ({ by: by.toLowerCase(), amount, total });

/** A custom error as every script shows it. */
const failure = (name, [by, asked, most]) => ({ name, by: by.toLowerCase(), asked, most });

/** What is thrown; the test ends where nothing is. */
async function thrown(work) {
  try {
    await work();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

/** Whether nonces follow on one another, from this one. */
const consecutive = (nonces, first) =>
  nonces.map(Number).sort((a, b) => a - b).every((nonce, i) => nonce === Number(first) + i);

const constants = { url, account, key, abi, bytecode, FIRST, QUICK, NOBODY };
module.exports = { ...constants, step, awaited, added, failure, thrown, consecutive };
