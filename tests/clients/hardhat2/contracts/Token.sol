// SPDX-License-Identifier: BSD-3-Clause
pragma solidity ^0.8.30;

/// A token as of ERC-20, with permits as of ERC-2612.
contract Token {
    string public constant name = "Token";
    string public constant symbol = "TOK";
    uint8 public constant decimals = 18;
    bytes32 public constant PERMIT =
        keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)");

    uint256 public totalSupply;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;
    mapping(address => uint256) public nonces;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    error InsufficientBalance(address owner, uint256 available, uint256 needed);
    error InsufficientAllowance(uint256 available, uint256 needed);
    error Expired();

    constructor(uint256 supply) {
        totalSupply = supply;
        balanceOf[msg.sender] = supply;
        emit Transfer(address(0), msg.sender, supply);
    }

    function transfer(address to, uint256 value) public returns (bool) {
        _move(msg.sender, to, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value) public returns (bool) {
        uint256 allowed = allowance[from][msg.sender];
        if (allowed < value) revert InsufficientAllowance(allowed, value);
        allowance[from][msg.sender] = allowed - value;
        _move(from, to, value);
        return true;
    }

    function approve(address spender, uint256 value) public returns (bool) {
        _approve(msg.sender, spender, value);
        return true;
    }

    function domainSeparator() public view returns (bytes32) {
        return keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                keccak256(bytes(name)),
                keccak256("1"),
                block.chainid,
                address(this)
            )
        );
    }

    function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s) public {
        if (block.timestamp > deadline) revert Expired();
        bytes32 content = keccak256(abi.encode(PERMIT, owner, spender, value, nonces[owner]++, deadline));
        address signer = ecrecover(keccak256(abi.encodePacked("\x19\x01", domainSeparator(), content)), v, r, s);
        require(signer == owner, "wrong signer");
        _approve(owner, spender, value);
    }

    function _approve(address owner, address spender, uint256 value) private {
        allowance[owner][spender] = value;
        emit Approval(owner, spender, value);
    }

    function _move(address from, address to, uint256 value) private {
        if (balanceOf[from] < value) revert InsufficientBalance(from, balanceOf[from], value);
        balanceOf[from] -= value;
        balanceOf[to] += value;
        emit Transfer(from, to, value);
    }
}

interface Receiver {
    function onERC721Received(address, address, uint256, bytes calldata) external returns (bytes4);
}

/// A collection as of ERC-721.
contract Collection {
    mapping(uint256 => address) public ownerOf;
    uint256 public count;

    event Transfer(address indexed from, address indexed to, uint256 indexed id);

    error NotOwner(address caller, uint256 id);

    function mint() public returns (uint256 id) {
        id = ++count;
        ownerOf[id] = msg.sender;
        emit Transfer(address(0), msg.sender, id);
    }

    function transferFrom(address from, address to, uint256 id) public {
        if (ownerOf[id] != msg.sender || from != msg.sender) revert NotOwner(msg.sender, id);
        ownerOf[id] = to;
        emit Transfer(from, to, id);
    }

    function safeTransferFrom(address from, address to, uint256 id) public {
        transferFrom(from, to, id);
        if (to.code.length == 0) return;
        bytes4 answer = Receiver(to).onERC721Received(msg.sender, from, id, "");
        require(answer == Receiver.onERC721Received.selector, "not a receiver");
    }
}

contract Holder is Receiver {
    event Received(address operator, uint256 id);

    function onERC721Received(address operator, address, uint256 id, bytes calldata) external returns (bytes4) {
        emit Received(operator, id);
        return Receiver.onERC721Received.selector;
    }
}
