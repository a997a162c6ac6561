import { expect } from "chai";
import { network } from "hardhat";

import suite from "../../suite.cjs";

const { ethers, networkHelpers: helpers } = await network.create("noderpc");
// This version has no helper for it.
helpers.reset = () => ethers.provider.send("hardhat_reset", []);

suite({ ethers, expect, helpers, own: [ethers] });
