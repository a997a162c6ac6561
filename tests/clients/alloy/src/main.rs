//! Typed calls of alloy against a development node. It prints a line for each:
//! `name ok`, or `name error` with the reason.

mod anvil;
mod pubsub;
mod reading;
mod sending;
mod tracing;

use std::{fmt::Display, future::Future, time::Duration};

use alloy::{
    consensus::BlockHeader,
    network::{BlockResponse, EthereumWallet, ReceiptResponse},
    primitives::{Address, B256},
    providers::{Provider, ProviderBuilder},
    signers::local::PrivateKeySigner,
    sol,
};

sol!(
    #[sol(rpc)]
    Counter,
    "../ethereum/evm/Counter.json"
);

/// The longest time for one step; a busy machine may be slow.
const PATIENCE: Duration = Duration::from_secs(60);

/// The keys of the first accounts of a development node.
pub const KEYS: [&str; 2] = [
    "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
];

/// Run a step, and print how it ended.
pub async fn step<T>(name: &str, call: impl Future<Output = eyre::Result<T>>) -> Option<T> {
    match tokio::time::timeout(PATIENCE, call).await {
        Ok(Ok(value)) => {
            println!("{name} ok");
            Some(value)
        }
        Ok(Err(error)) => failed(name, format!("{error:#}")),
        Err(_) => failed(name, "no answer in time"),
    }
}

fn failed<T>(name: &str, reason: impl Display) -> Option<T> {
    println!("{name} error {}", reason.to_string().replace('\n', " "));
    None
}

/// Run a step that calls the node once and checks the value with a condition.
#[macro_export]
macro_rules! ask {
    ($name:expr, $call:expr) => {
        $crate::step($name, async { eyre::Ok($call) }).await
    };
    ($name:expr, $call:expr, |$found:pat_param| $condition:expr) => {
        $crate::step($name, async {
            let value = $call;
            let $found = &value;
            eyre::ensure!($condition, "unexpected: {value:?}");
            eyre::Ok(value)
        })
        .await
    };
}

/// What the steps use: a deployed contract, and its transaction and block.
pub struct World {
    pub signer: PrivateKeySigner,
    pub other_signer: PrivateKeySigner,
    pub account: Address,
    pub other: Address,
    pub contract: Address,
    pub deployment: B256,
    pub block_hash: B256,
    pub block_number: u64,
}

async fn deployed(provider: &impl Provider) -> eyre::Result<World> {
    let keys: Vec<PrivateKeySigner> = KEYS
        .iter()
        .map(|key| key.parse())
        .collect::<Result<_, _>>()?;
    let receipt = Counter::deploy_builder(provider, alloy::primitives::U256::from(7))
        .send()
        .await?
        .get_receipt()
        .await?;
    let block_hash = receipt.block_hash().unwrap_or_default();
    let block = provider.get_block_by_hash(block_hash).await?;
    Ok(World {
        account: keys[0].address(),
        other: keys[1].address(),
        signer: keys[0].clone(),
        other_signer: keys[1].clone(),
        contract: receipt.contract_address().unwrap_or_default(),
        deployment: receipt.transaction_hash(),
        block_hash,
        block_number: block.map_or(0, |block| block.header().number()),
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> eyre::Result<()> {
    let mut urls = std::env::args().skip(1);
    let (Some(http), Some(websocket)) = (urls.next(), urls.next()) else {
        eyre::bail!("usage: noderpc-alloy HTTP_URL WEBSOCKET_URL");
    };
    let wallet = EthereumWallet::from(KEYS[0].parse::<PrivateKeySigner>()?);
    let provider = ProviderBuilder::new()
        .wallet(wallet.clone())
        .connect_http(http.parse()?);
    provider
        .client()
        .set_poll_interval(Duration::from_millis(50));
    // Its node signs.
    let unsigned = ProviderBuilder::default().connect_http(http.parse()?);
    unsigned
        .client()
        .set_poll_interval(Duration::from_millis(50));
    let Some(world) = step("deploy", deployed(&provider)).await else {
        eyre::bail!("the contract could not be deployed");
    };
    sending::steps(&provider, &unsigned, &world).await;
    reading::steps(&unsigned, &world).await;
    reading::filters(&unsigned, &world).await;
    tracing::steps(&unsigned, &world).await;
    let socket = ProviderBuilder::new()
        .wallet(wallet)
        .connect(&websocket)
        .await?;
    pubsub::steps(&socket, &world).await;
    anvil::steps(&unsigned, &world).await;
    println!("end ok");
    Ok(())
}
