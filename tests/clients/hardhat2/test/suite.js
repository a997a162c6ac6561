"use strict";

const { ethers } = require("hardhat");
const { expect } = require("chai");
const helpers = require("@nomicfoundation/hardhat-network-helpers");

require("../suite")({ ethers, expect, helpers, own: [] });
