//! Subscriptions over a websocket.

use alloy::{
    network::TransactionBuilder,
    primitives::U256,
    providers::Provider,
    rpc::types::{Filter, TransactionReceipt, TransactionRequest},
    sol_types::SolCall,
};
use futures_util::StreamExt;

use crate::{Counter, World};

async fn sent(provider: &impl Provider, world: &World) -> eyre::Result<TransactionReceipt> {
    let tx = TransactionRequest::default()
        .with_from(world.account)
        .with_to(world.contract)
        .with_input(
            Counter::addCall {
                amount: U256::from(1),
            }
            .abi_encode(),
        );
    Ok(provider.send_transaction(tx).await?.get_receipt().await?)
}

pub async fn steps(provider: &impl Provider, world: &World) {
    crate::step("subscribe newHeads", async {
        let mut heads = provider.subscribe_blocks().await?;
        let receipt = sent(provider, world).await?;
        while heads.recv().await?.hash != receipt.block_hash.unwrap_or_default() {}
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
        let receipt = sent(provider, world).await?;
        let log = logs.recv().await?;
        eyre::ensure!(
            log.transaction_hash == Some(receipt.transaction_hash),
            "{log:?}"
        );
        Ok(())
    })
    .await;
    crate::step("subscribe newPendingTransactions", async {
        let mut pending = provider.subscribe_pending_transactions().await?;
        let receipt = sent(provider, world).await?;
        let found = pending.recv().await?;
        eyre::ensure!(found == receipt.transaction_hash, "{found}");
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
