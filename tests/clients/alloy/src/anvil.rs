//! Methods that control a development node.

use alloy::{
    network::TransactionBuilder,
    primitives::{Address, B256, Bytes, U256, bytes},
    providers::{
        Provider,
        ext::{AnvilApi, ImpersonateConfig},
    },
    rpc::types::{
        TransactionRequest,
        anvil::{Forking, MineOptions, ReorgOptions, TransactionData},
    },
};

use crate::{World, ask};

const STRANGER: Address = Address::repeat_byte(0x77);

fn transfer(from: Address) -> TransactionRequest {
    TransactionRequest::default()
        .with_from(from)
        .with_to(STRANGER)
        .with_value(U256::from(1))
}

pub async fn steps(provider: &impl Provider, world: &World) {
    accounts(provider, world).await;
    tokens(provider, world).await;
    time(provider).await;
    mining(provider).await;
    pool(provider, world).await;
    blocks(provider).await;
    node(provider).await;
    again(provider).await;
}

async fn accounts(provider: &impl Provider, world: &World) {
    let ether = U256::from(10).pow(U256::from(18));
    ask!(
        "anvil_setBalance",
        {
            provider.anvil_set_balance(STRANGER, ether).await?;
            provider.get_balance(STRANGER).await?
        },
        |balance| *balance == ether
    );
    ask!(
        "anvil_setNonce",
        {
            provider.anvil_set_nonce(STRANGER, 5).await?;
            provider.get_transaction_count(STRANGER).await?
        },
        |nonce| *nonce == 5
    );
    ask!(
        "anvil_setCode",
        {
            provider
                .anvil_set_code(Address::repeat_byte(0x78), [0].into())
                .await?;
            provider.get_code_at(Address::repeat_byte(0x78)).await?
        },
        |code| code.len() == 1
    );
    ask!(
        "anvil_setStorageAt",
        {
            provider
                .anvil_set_storage_at(world.contract, U256::from(1), B256::with_last_byte(3))
                .await?;
            provider
                .get_storage_at(world.contract, U256::from(1))
                .await?
        },
        |word| *word == U256::from(3)
    );
    ask!(
        "anvil_impersonateAccount",
        {
            provider.anvil_impersonate_account(STRANGER).await?;
            let receipt = provider
                .send_transaction(transfer(STRANGER))
                .await?
                .get_receipt()
                .await?;
            provider.anvil_stop_impersonating_account(STRANGER).await?;
            receipt
        },
        |receipt| receipt.status()
    );
    ask!(
        "anvil_stopImpersonatingAccount",
        provider.send_transaction(transfer(STRANGER)).await.is_err(),
        |failed| *failed
    );
    ask!(
        "anvil_autoImpersonateAccount",
        {
            provider.anvil_auto_impersonate_account(true).await?;
            let receipt = provider
                .send_transaction(transfer(STRANGER))
                .await?
                .get_receipt()
                .await?;
            provider.anvil_auto_impersonate_account(false).await?;
            receipt
        },
        |receipt| receipt.status()
    );
    ask!(
        "impersonated with a config",
        {
            let config = ImpersonateConfig::default().fund(ether).stop_impersonate();
            provider
                .anvil_send_impersonated_transaction_with_config(
                    transfer(Address::repeat_byte(0x79)),
                    config,
                )
                .await?
                .get_receipt()
                .await?
        },
        |receipt| receipt.status()
    );
    ask!("eth_sendUnsignedTransaction", {
        let tx = transfer(STRANGER)
            .with_nonce(provider.get_transaction_count(STRANGER).await?)
            .with_gas_limit(21_000)
            .with_max_fee_per_gas(20_000_000_000)
            .with_max_priority_fee_per_gas(1)
            .with_chain_id(provider.get_chain_id().await?);
        provider.eth_send_unsigned_transaction(tx).await?
    });
    ask!(
        "eth_sendTransactionSync of AnvilApi",
        provider
            .eth_send_transaction_sync(transfer(world.account))
            .await?,
        |receipt| receipt.status()
    );
    // PUSH0, PUSH0, REVERT: its receipt has revertReason, which alloy does not know.
    ask!(
        "receipt of a revert",
        provider
            .eth_send_transaction_sync(
                TransactionRequest::default()
                    .with_from(world.account)
                    .with_deploy_code(bytes!("5f5ffd"))
                    .with_gas_limit(100_000)
            )
            .await?,
        |receipt| !receipt.status()
    );
}

/// What `tests/ethereum/rpc/dev/token.py` has: balances at slot 0, allowances at slot 1.
const TOKEN: Bytes = bytes!(
    "60043560005260003560e01c63dd62ed3e1460265760406000205460005260206000f30000005b60"
    "01602052604060002060205260243560005260406000205460005260206000f3"
);

async fn tokens(provider: &impl Provider, world: &World) {
    let token = Address::repeat_byte(0x70);
    ask!("anvil_dealERC20", {
        provider.anvil_set_code(token, TOKEN).await?;
        provider
            .anvil_deal_erc20(world.account, token, U256::from(5))
            .await?
    });
    ask!(
        "anvil_setERC20Allowance",
        provider
            .anvil_set_erc20_allowance(world.account, STRANGER, token, U256::from(5))
            .await?
    );
}

async fn time(provider: &impl Provider) {
    let latest = async || {
        provider.evm_mine(None).await?;
        let block = provider.get_block(alloy::eips::BlockId::latest()).await?;
        eyre::Ok(block.map_or(0, |block| block.header.timestamp))
    };
    ask!(
        "anvil_increaseTime",
        provider.anvil_increase_time(1000).await?,
        |ahead| *ahead >= 1000
    );
    ask!(
        "anvil_setNextBlockTimestamp",
        {
            let next = latest().await? + 500;
            provider.anvil_set_next_block_timestamp(next).await?;
            (next, latest().await?)
        },
        |(next, found)| next == found
    );
    ask!(
        "anvil_setTime",
        {
            let next = latest().await? + 500;
            provider.anvil_set_time(next).await?;
            latest().await? >= next
        },
        |later| *later
    );
    ask!(
        "anvil_setBlockTimestampInterval",
        {
            provider.anvil_set_block_timestamp_interval(100).await?;
            let before = latest().await?;
            latest().await? - before
        },
        |step| *step == 100
    );
    ask!(
        "anvil_removeBlockTimestampInterval",
        provider.anvil_remove_block_timestamp_interval().await?,
        |removed| *removed
    );
}

async fn mining(provider: &impl Provider) {
    ask!(
        "anvil_getAutomine",
        provider.anvil_get_auto_mine().await?,
        |on| *on
    );
    ask!(
        "anvil_mine",
        {
            let before = provider.get_block_number().await?;
            provider.anvil_mine(Some(3), Some(10)).await?;
            provider.get_block_number().await? - before
        },
        |count| *count == 3
    );
    ask!("anvil_mine of one", provider.anvil_mine(None, None).await?);
    ask!(
        "evm_mine",
        provider
            .evm_mine(Some(MineOptions::Options {
                timestamp: None,
                blocks: Some(2)
            }))
            .await?,
        |answer| answer == "0x0"
    );
    ask!(
        "evm_mine_detailed",
        provider
            .anvil_mine_detailed(Some(MineOptions::Options {
                timestamp: None,
                blocks: Some(2)
            }))
            .await?,
        |blocks| blocks.len() == 2
    );
    ask!("anvil_setIntervalMining", {
        provider.anvil_set_interval_mining(1).await?;
        let before = provider.get_block_number().await?;
        while provider.get_block_number().await? == before {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        provider.anvil_set_interval_mining(0).await?;
        provider.anvil_set_auto_mine(true).await?
    });
    ask!(
        "anvil_setBlockGasLimit",
        provider.anvil_set_block_gas_limit(25_000_000).await?,
        |set| *set
    );
    ask!(
        "anvil_setNextBlockBaseFeePerGas",
        {
            provider
                .anvil_set_next_block_base_fee_per_gas(1_500_000_000)
                .await?;
            provider.anvil_mine(Some(1), None).await?;
            provider
                .get_block(alloy::eips::BlockId::latest())
                .await?
                .and_then(|block| block.header.base_fee_per_gas)
        },
        |fee| *fee == Some(1_500_000_000)
    );
    ask!(
        "anvil_setCoinbase",
        {
            provider.anvil_set_coinbase(STRANGER).await?;
            provider.anvil_mine(Some(1), None).await?;
            provider
                .get_block(alloy::eips::BlockId::latest())
                .await?
                .map(|block| block.header.beneficiary)
        },
        |miner| *miner == Some(STRANGER)
    );
    ask!(
        "anvil_setChainId",
        {
            let before = provider.get_chain_id().await?;
            provider.anvil_set_chain_id(4242).await?;
            let changed = provider.get_chain_id().await?;
            provider.anvil_set_chain_id(before).await?;
            (before, changed)
        },
        |ids| *ids == (31337, 4242)
    );
}

async fn pool(provider: &impl Provider, world: &World) {
    ask!(
        "anvil_setAutomine",
        provider.anvil_set_auto_mine(false).await?
    );
    let waiting = async || {
        eyre::Ok(
            *provider
                .send_transaction(transfer(world.account))
                .await?
                .tx_hash(),
        )
    };
    ask!(
        "anvil_dropTransaction",
        {
            let hash = waiting().await?;
            (hash, provider.anvil_drop_transaction(hash).await?)
        },
        |(hash, dropped)| *dropped == Some(*hash)
    );
    ask!(
        "anvil_dropAllTransactions",
        {
            let hash = waiting().await?;
            provider.anvil_drop_all_transactions().await?;
            provider.get_transaction_by_hash(hash).await?
        },
        |found| found.is_none()
    );
    ask!(
        "anvil_removePoolTransactions",
        {
            let hash = waiting().await?;
            provider
                .anvil_remove_pool_transactions(world.account)
                .await?;
            provider.get_transaction_by_hash(hash).await?
        },
        |found| found.is_none()
    );
    ask!(
        "anvil_setAutomine true",
        provider.anvil_set_auto_mine(true).await?
    );
}

async fn blocks(provider: &impl Provider) {
    ask!(
        "anvil_snapshot and anvil_revert",
        {
            let before = provider.get_block_number().await?;
            let id = provider.anvil_snapshot().await?;
            provider.anvil_mine(Some(2), None).await?;
            eyre::ensure!(provider.anvil_revert(id).await?, "not reverted");
            provider.get_block_number().await? - before
        },
        |more| *more == 0
    );
    ask!(
        "anvil_rollback",
        {
            let before = provider.get_block_number().await?;
            provider.anvil_rollback(Some(2)).await?;
            before - provider.get_block_number().await?
        },
        |fewer| *fewer == 2
    );
    ask!(
        "anvil_rollback of one",
        provider.anvil_rollback(None).await?
    );
    ask!(
        "anvil_reorg",
        {
            let before = provider.get_block(alloy::eips::BlockId::latest()).await?;
            let tx = transfer(provider.get_accounts().await?[2]);
            provider
                .anvil_reorg(ReorgOptions {
                    depth: 2,
                    tx_block_pairs: vec![(TransactionData::JSON(tx), 0)],
                })
                .await?;
            (
                before,
                provider.get_block(alloy::eips::BlockId::latest()).await?,
            )
        },
        |(before, after)| {
            let (before, after) = (
                before.as_ref().map(|block| &block.header),
                after.as_ref().map(|block| &block.header),
            );
            before.map(|header| header.number) == after.map(|header| header.number)
                && before.map(|header| header.hash) != after.map(|header| header.hash)
        }
    );
    ask!(
        "anvil_dumpState and anvil_loadState",
        {
            let dump = provider.anvil_dump_state().await?;
            provider.anvil_load_state(dump).await?
        },
        |loaded| *loaded
    );
}

async fn node(provider: &impl Provider) {
    ask!("anvil_nodeInfo", provider.anvil_node_info().await?);
    ask!("anvil_metadata", provider.anvil_metadata().await?);
    ask!(
        "anvil_setLoggingEnabled",
        provider.anvil_set_logging(true).await?
    );
    ask!(
        "anvil_setMinGasPrice",
        provider.anvil_set_min_gas_price(1).await.is_err(),
        |failed| *failed
    );
    ask!(
        "anvil_setRpcUrl",
        provider
            .anvil_set_rpc_url("http://127.0.0.1:1".into())
            .await?
    );
    ask!(
        "anvil_getBlobsByTransactionHash",
        provider.anvil_get_blobs_by_tx_hash(B256::ZERO).await?,
        |blobs| blobs.is_none()
    );
    ask!(
        "anvil_getBlobByHash",
        provider
            .anvil_get_blob_by_versioned_hash(B256::ZERO)
            .await?,
        |blob| blob.is_none()
    );
}

async fn again(provider: &impl Provider) {
    ask!(
        "anvil_reset",
        {
            provider.anvil_reset(None).await?;
            provider.get_block_number().await?
        },
        |number| *number == 0
    );
    ask!(
        "anvil_reset of no fork",
        provider.anvil_reset(Some(Forking::default())).await?
    );
}
