// SPDX-License-Identifier: MIT
pragma solidity ^0.8.0;

import {console} from "hardhat/console.sol";

/// Prints with hardhat's library, which forge's console.sol equals.
contract Talks {
    error TooMuch(uint256 asked);

    function talk(uint256 n) external view returns (uint256) {
        console.log("n is", n);
        console.log("%s has %d", msg.sender, n);
        console.log(true, msg.sender, "x", n);
        console.logInt(-5);
        console.logBytes4(0x01020304);
        console.logBytes(hex"0102");
        console.log();
        require(n != 0, "nothing to say");
        if (n > 10) revert TooMuch(n);
        return n;
    }
}
