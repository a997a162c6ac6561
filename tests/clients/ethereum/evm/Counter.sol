// SPDX-License-Identifier: BSD-3-Clause
pragma solidity ^0.8.30;

/// What the scripts beside this deploy. Counter.json has its ABI and its bytecode, made by solc
/// 0.8.30, optimized for 200 runs, for the fork Cancun.
contract Counter {
    event Added(address indexed by, uint256 indexed amount, uint256 total);

    error TooMuch(address by, uint256 asked, uint256 most);

    uint256 public total;

    constructor(uint256 first) {
        total = first;
    }

    function add(uint256 amount) external returns (uint256) {
        if (amount > 1000) revert TooMuch(msg.sender, amount, 1000);
        require(amount != 0, "nothing to add");
        total += amount;
        emit Added(msg.sender, amount, total);
        return total;
    }

    function take(uint256 amount) external {
        total -= amount;
    }

    function plus(uint256 amount) external view returns (uint256) {
        return total + amount;
    }

    function time() external view returns (uint256) {
        return block.timestamp;
    }
}
