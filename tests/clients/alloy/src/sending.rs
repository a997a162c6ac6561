//! Transactions of each type, signed here or by the node.

use alloy::{
    consensus::{SidecarBuilder, SimpleCoder, Transaction, Typed2718},
    eips::{
        eip2718::Encodable2718,
        eip2930::{AccessList, AccessListItem},
        eip7594::BlobTransactionSidecarEip7594,
        eip7702::Authorization,
    },
    network::{
        EthereumWallet, TransactionBuilder, TransactionBuilder4844, TransactionBuilder7594,
        TransactionBuilder7702,
    },
    primitives::{Address, B256, Bytes, U256},
    providers::{Provider, ext::TraceApi},
    rpc::types::{TransactionReceipt, TransactionRequest},
    signers::Signer,
};

use crate::{Counter, World, ask};

pub async fn steps(provider: &impl Provider, unsigned: &impl Provider, world: &World) {
    types(provider, world).await;
    contracts(provider, world).await;
    by_the_node(unsigned, world).await;
    raw(provider, world).await;
}

fn transfer(world: &World) -> TransactionRequest {
    TransactionRequest::default()
        .with_from(world.account)
        .with_to(world.other)
        .with_value(U256::from(1))
}

async fn sent(
    provider: &impl Provider,
    tx: TransactionRequest,
    kind: u8,
) -> eyre::Result<TransactionReceipt> {
    let receipt = provider.send_transaction(tx).await?.get_receipt().await?;
    eyre::ensure!(receipt.status(), "the transaction failed");
    eyre::ensure!(
        receipt.transaction_type() as u8 == kind,
        "type {:?}",
        receipt.transaction_type()
    );
    let found = provider
        .get_transaction_by_hash(receipt.transaction_hash)
        .await?;
    let kind_found = found.map(|tx| tx.ty());
    eyre::ensure!(kind_found == Some(kind), "type {kind_found:?}");
    Ok(receipt)
}

async fn types(provider: &impl Provider, world: &World) {
    let price = 20_000_000_000_u128;
    ask!(
        "send legacy",
        sent(provider, transfer(world).with_gas_price(price), 0).await?
    );
    let listed = AccessList(vec![AccessListItem {
        address: world.contract,
        storage_keys: vec![B256::ZERO],
    }]);
    let tx = transfer(world)
        .with_gas_price(price)
        .with_access_list(listed);
    ask!("send access list", sent(provider, tx, 1).await?);
    ask!(
        "send dynamic fee",
        sent(provider, transfer(world), 2).await?
    );
    ask!(
        "send blobs of EIP-7594",
        sent(provider, blobs(world)?, 3).await?,
        |receipt| receipt.blob_gas_used == Some(131_072)
    );
    ask!(
        "send authorization",
        authorized(provider, world, world.contract).await?,
        |code| code.starts_with(&[0xef, 1, 0])
    );
    ask!(
        "remove authorization",
        authorized(provider, world, Address::ZERO).await?,
        |code| code.is_empty()
    );
}

/// The code of the other account after it has authorized a contract.
async fn authorized(
    provider: &impl Provider,
    world: &World,
    address: Address,
) -> eyre::Result<Bytes> {
    let authorization = Authorization {
        chain_id: U256::from(provider.get_chain_id().await?),
        address,
        nonce: provider.get_transaction_count(world.other).await?,
    };
    let signature = world
        .other_signer
        .sign_hash(&authorization.signature_hash())
        .await?;
    let tx = transfer(world)
        .with_to(world.account)
        .with_authorization_list(vec![authorization.into_signed(signature)]);
    sent(provider, tx, 4).await?;
    Ok(provider.get_code_at(world.other).await?)
}

fn blobs(world: &World) -> eyre::Result<TransactionRequest> {
    let builder: SidecarBuilder<SimpleCoder> = SidecarBuilder::from_slice(b"a blob");
    let sidecar: BlobTransactionSidecarEip7594 = builder.build_7594()?;
    let mut tx = transfer(world).with_max_fee_per_blob_gas(1_000_000_000);
    tx.set_blob_sidecar_7594(sidecar);
    Ok(tx)
}

async fn contracts(provider: &impl Provider, world: &World) {
    let counter = Counter::new(world.contract, provider);
    ask!(
        "call of a contract",
        counter.total().call().await?,
        |total| *total == U256::from(7)
    );
    ask!(
        "transaction to a contract",
        counter
            .add(U256::from(5))
            .send()
            .await?
            .get_receipt()
            .await?,
        |receipt| receipt.status()
    );
    ask!(
        "events of a contract",
        counter
            .Added_filter()
            .from_block(0)
            .query()
            .await?
            .into_iter()
            .map(|(event, _)| event.total)
            .collect::<Vec<_>>(),
        |totals| *totals == [U256::from(12)]
    );
    ask!(
        "gas of a contract",
        counter.add(U256::from(5)).estimate_gas().await?,
        |gas| *gas > 21_000
    );
    crate::step("custom error", async {
        let error = counter.add(U256::from(2000)).call().await.err();
        let decoded = error
            .as_ref()
            .and_then(|error| error.as_decoded_error::<Counter::TooMuch>());
        eyre::ensure!(
            decoded.map(|found| found.most) == Some(U256::from(1000)),
            "{error:?}"
        );
        Ok(())
    })
    .await;
    crate::step("revert with a reason", async {
        let error = counter
            .add(U256::ZERO)
            .call()
            .await
            .err()
            .map(|error| error.to_string());
        eyre::ensure!(
            error
                .as_ref()
                .is_some_and(|text| text.contains("nothing to add")),
            "{error:?}"
        );
        Ok(())
    })
    .await;
}

async fn by_the_node(provider: &impl Provider, world: &World) {
    ask!(
        "eth_sendTransaction",
        provider
            .send_transaction(transfer(world))
            .await?
            .get_receipt()
            .await?,
        |receipt| receipt.status()
    );
    ask!(
        "eth_sendTransactionSync",
        provider.send_transaction_sync(transfer(world)).await?,
        |receipt| receipt.status()
    );
    ask!(
        "eth_fillTransaction",
        provider.fill_transaction(transfer(world)).await?,
        |filled| filled.tx.nonce() > 0
    );
    ask!(
        "eth_signTransaction",
        provider
            .raw_request::<_, serde_json::Value>(
                "eth_signTransaction".into(),
                (transfer(world).with_gas_limit(21_000).with_nonce(9),)
            )
            .await?
    );
}

async fn raw(provider: &impl Provider, world: &World) {
    let signed = async || {
        let wallet = EthereumWallet::from(world.signer.clone());
        let tx = transfer(world)
            .with_nonce(provider.get_transaction_count(world.account).await?)
            .with_chain_id(provider.get_chain_id().await?)
            .with_gas_limit(21_000)
            .with_max_fee_per_gas(20_000_000_000)
            .with_max_priority_fee_per_gas(1);
        eyre::Ok(tx.build(&wallet).await?.encoded_2718())
    };
    ask!(
        "trace_rawTransaction",
        provider
            .trace_raw_transaction(&signed().await?)
            .trace()
            .state_diff()
            .await?,
        |replay| replay.trace.len() == 1 && replay.state_diff.is_some()
    );
    ask!(
        "eth_sendRawTransaction",
        provider
            .send_raw_transaction(&signed().await?)
            .await?
            .get_receipt()
            .await?,
        |receipt| receipt.status()
    );
    ask!(
        "eth_sendRawTransactionSync",
        provider.send_raw_transaction_sync(&signed().await?).await?,
        |receipt| receipt.status()
    );
    crate::step("nonce too low", async {
        let nonce = provider.get_transaction_count(world.account).await?;
        let error = provider
            .send_transaction(transfer(world).with_nonce(nonce - 1))
            .await
            .err();
        let text = error.map(|error| error.to_string()).unwrap_or_default();
        eyre::ensure!(text.contains("nonce too low"), "{text}");
        Ok(())
    })
    .await;
}
