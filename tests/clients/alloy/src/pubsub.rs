//! Subscriptions over a websocket.

use std::time::Duration;

use alloy::{
    network::TransactionBuilder,
    primitives::{B256, U256},
    providers::Provider,
    rpc::types::{Filter, TransactionRequest},
    sol_types::SolCall,
};
use futures_util::StreamExt;
use tokio::time::timeout;

use crate::{Counter, World};

/// Send a transaction, and do not wait for its receipt, for which alloy subscribes by itself.
async fn sent(provider: &impl Provider, world: &World) -> eyre::Result<B256> {
    let tx = TransactionRequest::default()
        .with_from(world.account)
        .with_to(world.contract)
        .with_input(
            Counter::addCall {
                amount: U256::from(1),
            }
            .abi_encode(),
        );
    Ok(*provider.send_transaction(tx).await?.tx_hash())
}

pub async fn steps(provider: &impl Provider, world: &World) {
    crate::step("subscribe newHeads", async {
        let mut heads = provider.subscribe_blocks().await?;
        let head = loop {
            // anvil may miss the block of the first transaction.
            sent(provider, world).await?;
            if let Ok(head) = timeout(Duration::from_secs(2), heads.recv()).await {
                break head?;
            }
        };
        eyre::ensure!(head.number > world.block_number, "{head:?}");
        provider.unsubscribe(*heads.local_id()).await?;
        Ok(())
    })
    .await;
    crate::step("subscribe full blocks", async {
        let mut blocks = provider
            .subscribe_full_blocks()
            .full()
            .into_stream()
            .await?;
        sent(provider, world).await?;
        blocks.next().await.transpose()?;
        Ok(())
    })
    .await;
    crate::step("subscribe logs", async {
        let filter = Filter::new().address(world.contract);
        let mut logs = provider.subscribe_logs(&filter).await?;
        let hash = sent(provider, world).await?;
        let log = logs.recv().await?;
        eyre::ensure!(log.transaction_hash == Some(hash), "{log:?}");
        Ok(())
    })
    .await;
    crate::step("subscribe newPendingTransactions", async {
        let mut pending = provider.subscribe_pending_transactions().await?;
        let hash = sent(provider, world).await?;
        let found = pending.recv().await?;
        eyre::ensure!(found == hash, "{found}");
        Ok(())
    })
    .await;
    crate::step("subscribe newPendingTransactions full", async {
        let mut pending = provider.subscribe_full_pending_transactions().await?;
        sent(provider, world).await?;
        pending.recv().await?;
        Ok(())
    })
    .await;
}
