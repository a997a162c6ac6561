//! What `eth_`, `net_`, `web3_` and `txpool_` methods answer.

use alloy::{
    eips::BlockNumberOrTag,
    network::TransactionBuilder,
    primitives::{B256, Bytes, U256},
    providers::{
        Provider,
        ext::{NetApi, TxPoolApi},
    },
    rpc::types::{
        BlockId, BlockOverrides, Filter, TransactionRequest,
        simulate::{SimBlock, SimulatePayload},
        state::{AccountOverride, StateOverride},
    },
    sol_types::SolCall,
};

use crate::{Counter, World, ask};

pub async fn steps(provider: &impl Provider, world: &World) {
    node(provider).await;
    blocks(provider, world).await;
    transactions(provider, world).await;
    state(provider, world).await;
    calls(provider, world).await;
}

async fn node(provider: &impl Provider) {
    ask!("web3_clientVersion", provider.get_client_version().await?);
    ask!("web3_sha3", provider.get_sha3(b"abc").await?, |hash| *hash
        == alloy::primitives::keccak256(b"abc"));
    ask!("net_version", provider.net_version().await?);
    ask!(
        "net_listening",
        provider.net_listening().await?,
        |listening| *listening
    );
    ask!("net_peerCount", provider.net_peer_count().await?);
    ask!("eth_chainId", provider.get_chain_id().await?);
    ask!(
        "eth_blockNumber",
        provider.get_block_number().await?,
        |number| *number > 0
    );
    ask!(
        "eth_accounts",
        provider.get_accounts().await?,
        |accounts| accounts.len() >= 10
    );
    ask!("eth_syncing", provider.syncing().await?);
    ask!(
        "eth_gasPrice",
        provider.get_gas_price().await?,
        |price| *price > 0
    );
    ask!(
        "eth_maxPriorityFeePerGas",
        provider.get_max_priority_fee_per_gas().await?
    );
    ask!(
        "eth_blobBaseFee",
        provider.get_blob_base_fee().await?,
        |fee| *fee > 0
    );
    ask!(
        "eth_feeHistory",
        provider
            .get_fee_history(4, BlockNumberOrTag::Latest, &[10.0, 90.0])
            .await?,
        |fees| { fees.base_fee_per_gas.len() == fees.gas_used_ratio.len() + 1 }
    );
    ask!("fees of EIP-1559", provider.estimate_eip1559_fees().await?);
    ask!("txpool_status", provider.txpool_status().await?);
    ask!("txpool_content", provider.txpool_content().await?);
    ask!(
        "txpool_contentFrom",
        provider.txpool_content_from(Default::default()).await?
    );
    ask!("txpool_inspect", provider.txpool_inspect().await?);
}

async fn blocks(provider: &impl Provider, world: &World) {
    for tag in [
        BlockNumberOrTag::Earliest,
        BlockNumberOrTag::Latest,
        BlockNumberOrTag::Safe,
        BlockNumberOrTag::Finalized,
        BlockNumberOrTag::Pending,
        BlockNumberOrTag::Number(world.block_number),
    ] {
        ask!(
            &format!("eth_getBlockByNumber {tag}"),
            provider.get_block_by_number(tag).await?,
            |block| block.is_some()
        );
        ask!(
            &format!("eth_getBlockByNumber {tag} full"),
            provider.get_block_by_number(tag).full().await?,
            |block| block.is_some()
        );
        ask!(
            &format!("eth_getBlockReceipts {tag}"),
            provider.get_block_receipts(tag.into()).await?
        );
        ask!(
            &format!("eth_getBlockTransactionCountByNumber {tag}"),
            provider.get_block_transaction_count_by_number(tag).await?
        );
    }
    let (hash, number) = (world.block_hash, world.block_number);
    ask!(
        "eth_getBlockByHash",
        provider.get_block_by_hash(hash).await?,
        |block| block
            .as_ref()
            .is_some_and(|block| block.header.hash == hash)
    );
    ask!(
        "eth_getBlockByHash full",
        provider.get_block_by_hash(hash).full().await?,
        |block| block.is_some()
    );
    ask!(
        "eth_getBlockByHash of none",
        provider.get_block_by_hash(B256::ZERO).await?,
        |block| block.is_none()
    );
    ask!(
        "eth_getBlockTransactionCountByHash",
        provider.get_block_transaction_count_by_hash(hash).await?,
        |count| *count == Some(1)
    );
    ask!(
        "eth_getBlockReceipts by hash",
        provider.get_block_receipts(hash.into()).await?,
        |receipts| receipts.as_ref().is_some_and(|all| all.len() == 1)
    );
    ask!(
        "eth_getHeaderByHash",
        provider.get_header_by_hash(hash).await?,
        |header| header.is_some()
    );
    ask!(
        "eth_getHeaderByNumber",
        provider.get_header_by_number(number.into()).await?,
        |header| header.is_some()
    );
    ask!(
        "eth_getUncleCountByBlockNumber",
        provider.get_uncle_count(number.into()).await?,
        |count| *count == 0
    );
    ask!(
        "eth_getUncleCountByBlockHash",
        provider.get_uncle_count(hash.into()).await?,
        |count| *count == 0
    );
    ask!(
        "eth_getUncleByBlockNumberAndIndex",
        provider.get_uncle(number.into(), 0).await?,
        |uncle| uncle.is_none()
    );
    ask!(
        "eth_getUncleByBlockHashAndIndex",
        provider.get_uncle(hash.into(), 0).await?,
        |uncle| uncle.is_none()
    );
}

async fn transactions(provider: &impl Provider, world: &World) {
    let (hash, number, tx) = (world.block_hash, world.block_number, world.deployment);
    ask!(
        "eth_getTransactionByHash",
        provider.get_transaction_by_hash(tx).await?,
        |found| found.is_some()
    );
    ask!(
        "eth_getTransactionByHash of none",
        provider.get_transaction_by_hash(B256::ZERO).await?,
        |found| found.is_none()
    );
    ask!(
        "eth_getTransactionReceipt",
        provider.get_transaction_receipt(tx).await?,
        |found| found.is_some()
    );
    ask!(
        "eth_getTransactionByBlockHashAndIndex",
        provider
            .get_transaction_by_block_hash_and_index(hash, 0)
            .await?,
        |found| found.is_some()
    );
    ask!(
        "eth_getTransactionByBlockNumberAndIndex",
        provider
            .get_transaction_by_block_number_and_index(number.into(), 0)
            .await?,
        |found| found.is_some()
    );
    ask!(
        "eth_getRawTransactionByHash",
        provider.get_raw_transaction_by_hash(tx).await?,
        |raw| raw.is_some()
    );
    ask!(
        "eth_getRawTransactionByBlockHashAndIndex",
        provider
            .get_raw_transaction_by_block_hash_and_index(hash, 0)
            .await?,
        |raw| raw.is_some()
    );
    ask!(
        "eth_getRawTransactionByBlockNumberAndIndex",
        provider
            .get_raw_transaction_by_block_number_and_index(number.into(), 0)
            .await?,
        |raw| raw.is_some()
    );
    ask!(
        "eth_getTransactionBySenderAndNonce",
        provider
            .get_transaction_by_sender_nonce(world.account, 0)
            .await?,
        |found| found.is_some()
    );
    let filter = Filter::new().address(world.contract).from_block(0);
    ask!(
        "eth_getLogs",
        provider.get_logs(&filter).await?,
        |logs| logs.len() == 1
    );
    let filter = Filter::new().address(world.contract).at_block_hash(hash);
    ask!(
        "eth_getLogs of a block",
        provider.get_logs(&filter).await?,
        |logs| logs.is_empty()
    );
}

async fn state(provider: &impl Provider, world: &World) {
    let contract = world.contract;
    ask!(
        "eth_getBalance",
        provider.get_balance(world.account).await?,
        |balance| !balance.is_zero()
    );
    ask!(
        "eth_getBalance earliest",
        provider.get_balance(world.account).earliest().await?,
        |balance| !balance.is_zero()
    );
    ask!(
        "eth_getBalance by hash",
        provider
            .get_balance(world.account)
            .hash(world.block_hash)
            .await?
    );
    ask!(
        "eth_getTransactionCount",
        provider
            .get_transaction_count(world.account)
            .pending()
            .await?,
        |count| *count > 0
    );
    ask!(
        "eth_getCode",
        provider.get_code_at(contract).await?,
        |code| !code.is_empty()
    );
    ask!(
        "eth_getStorageAt",
        provider.get_storage_at(contract, U256::ZERO).await?,
        |word| *word == U256::from(12)
    );
    ask!(
        "eth_getProof",
        provider.get_proof(contract, vec![B256::ZERO]).await?,
        |proof| proof.storage_proof[0].value == U256::from(12)
    );
    ask!(
        "eth_getAccount",
        provider.get_account(world.account).await?,
        |account| account.nonce > 0
    );
    ask!(
        "eth_getAccountInfo",
        provider.get_account_info(contract).await?,
        |account| !account.code.is_empty()
    );
}

async fn calls(provider: &impl Provider, world: &World) {
    let input = Counter::totalCall {}.abi_encode();
    let total = TransactionRequest::default()
        .with_to(world.contract)
        .with_input(input);
    let is = |value: u64| {
        move |found: &Bytes| U256::try_from_be_slice(found) == Some(U256::from(value))
    };
    ask!("eth_call", provider.call(total.clone()).await?, |found| is(
        12
    )(
        found
    ));
    ask!(
        "eth_call at a hash",
        provider
            .call(total.clone())
            .block(world.block_hash.into())
            .await?,
        |found| is(7)(found)
    );
    let account =
        AccountOverride::default().with_state_diff([(B256::ZERO, B256::with_last_byte(9))]);
    let changed: StateOverride = [(world.contract, account)].into_iter().collect();
    ask!(
        "eth_call with a state",
        provider
            .call(total.clone())
            .overrides(changed.clone())
            .await?,
        |found| is(9)(found)
    );
    let input = Counter::timeCall {}.abi_encode();
    let time = TransactionRequest::default()
        .with_to(world.contract)
        .with_input(input);
    let overrides = BlockOverrides::default().with_time(4_000_000_000);
    ask!(
        "eth_call with a block",
        provider.call(time).with_block_overrides(overrides).await?,
        |found| is(4_000_000_000)(found)
    );
    let add = TransactionRequest::default()
        .with_from(world.account)
        .with_to(world.contract)
        .with_input(
            Counter::addCall {
                amount: U256::from(1),
            }
            .abi_encode(),
        );
    ask!(
        "eth_estimateGas",
        provider.estimate_gas(add.clone()).await?,
        |gas| *gas > 21_000
    );
    ask!(
        "eth_estimateGas with a state",
        provider
            .estimate_gas(add.clone())
            .overrides(changed.clone())
            .await?,
        |gas| *gas > 21_000
    );
    ask!(
        "eth_createAccessList",
        provider.create_access_list(&add).await?,
        |list| list.access_list.0.len() == 1
    );
    for validation in [false, true] {
        let payload = SimulatePayload {
            block_state_calls: vec![
                SimBlock {
                    block_overrides: None,
                    state_overrides: Some(changed.clone()),
                    calls: vec![
                        add.clone()
                            .with_max_fee_per_gas(100_000_000_000)
                            .with_max_priority_fee_per_gas(1),
                        total
                            .clone()
                            .with_from(world.other)
                            .with_max_fee_per_gas(100_000_000_000)
                            .with_max_priority_fee_per_gas(1),
                    ],
                },
                SimBlock {
                    block_overrides: None,
                    state_overrides: None,
                    calls: vec![],
                },
            ],
            trace_transfers: true,
            validation,
            return_full_transactions: validation,
        };
        ask!(
            &format!("eth_simulateV1 validation={validation}"),
            provider.simulate(&payload).await?,
            |blocks| { blocks.len() == 2 && is(10)(&blocks[0].calls[1].return_data) }
        );
    }
    ask!("batch", {
        let client = provider.client();
        let mut batch = alloy::rpc::client::BatchRequest::new(client);
        let chain_id = batch.add_call::<_, U256>("eth_chainId", &())?;
        let balance =
            batch.add_call::<_, U256>("eth_getBalance", &(world.account, BlockId::latest()))?;
        batch.send().await?;
        (chain_id.await?, balance.await?)
    });
}

/// Filters that alloy polls.
pub async fn filters(provider: &impl Provider, world: &World) {
    let send = async || {
        let tx = TransactionRequest::default()
            .with_from(world.account)
            .with_to(world.contract)
            .with_input(
                Counter::addCall {
                    amount: U256::from(1),
                }
                .abi_encode(),
            );
        eyre::Ok(provider.send_transaction(tx).await?.get_receipt().await?)
    };
    let filter = Filter::new().address(world.contract);
    crate::step("filters", async {
        let blocks = provider.new_block_filter().await?;
        let logs = provider.new_filter(&filter).await?;
        let pending = provider.new_pending_transactions_filter(false).await?;
        let full = provider.new_pending_transactions_filter(true).await?;
        let receipt = send().await?;
        let found: Vec<B256> = provider.get_filter_changes(blocks).await?;
        eyre::ensure!(
            found.contains(&receipt.block_hash.unwrap_or_default()),
            "blocks {found:?}"
        );
        let found = provider.get_filter_changes_dyn(logs).await?;
        eyre::ensure!(
            found.as_logs().is_some_and(|logs| logs.len() == 1),
            "logs {found:?}"
        );
        eyre::ensure!(!provider.get_filter_logs(logs).await?.is_empty(), "no logs");
        let found: Vec<B256> = provider.get_filter_changes(pending).await?;
        eyre::ensure!(found == [receipt.transaction_hash], "pending {found:?}");
        let found = provider.get_filter_changes_dyn(full).await?;
        eyre::ensure!(!found.is_empty(), "full {found:?}");
        eyre::ensure!(provider.uninstall_filter(logs).await?, "not uninstalled");
        eyre::ensure!(!provider.uninstall_filter(logs).await?, "uninstalled twice");
        Ok(())
    })
    .await;
    use futures_util::StreamExt;
    crate::step("watch_blocks", async {
        let mut stream = provider.watch_blocks().await?.into_stream();
        send().await?;
        eyre::ensure!(stream.next().await.is_some_and(|found| !found.is_empty()));
        Ok(())
    })
    .await;
    crate::step("watch_full_blocks", async {
        let mut stream = provider.watch_full_blocks().await?.full().into_stream();
        send().await?;
        stream.next().await.transpose()?;
        Ok(())
    })
    .await;
    crate::step("watch_logs", async {
        let mut stream = provider.watch_logs(&filter).await?.into_stream();
        send().await?;
        eyre::ensure!(stream.next().await.is_some_and(|found| found.len() == 1));
        Ok(())
    })
    .await;
    crate::step("watch_pending_transactions", async {
        let mut stream = provider.watch_pending_transactions().await?.into_stream();
        send().await?;
        eyre::ensure!(stream.next().await.is_some_and(|found| found.len() == 1));
        Ok(())
    })
    .await;
    crate::step("watch_full_pending_transactions", async {
        let mut stream = provider
            .watch_full_pending_transactions()
            .await?
            .into_stream();
        send().await?;
        eyre::ensure!(stream.next().await.is_some_and(|found| found.len() == 1));
        Ok(())
    })
    .await;
}
