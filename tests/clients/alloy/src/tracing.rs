//! `debug_` and `trace_` methods.

use alloy::{
    eips::BlockNumberOrTag,
    network::TransactionBuilder,
    primitives::U256,
    providers::{
        Provider,
        ext::{DebugApi, TraceApi},
    },
    rpc::types::{
        BlockId, TransactionRequest,
        trace::{
            filter::TraceFilter,
            geth::{
                CallConfig, GethDebugBuiltInTracerType, GethDebugTracerType,
                GethDebugTracingOptions, PreStateConfig,
            },
            parity::{TraceResults, TraceType},
        },
    },
    sol_types::SolCall,
};

use crate::{Counter, World, ask};

pub async fn steps(provider: &impl Provider, world: &World) {
    let (block, tx) = (BlockId::from(world.block_number), world.deployment);
    ask!(
        "debug_getRawHeader",
        provider.debug_get_raw_header(block).await?
    );
    ask!(
        "debug_getRawBlock",
        provider.debug_get_raw_block(block).await?
    );
    ask!(
        "debug_getRawTransaction",
        provider.debug_get_raw_transaction(tx).await?
    );
    ask!(
        "debug_getRawReceipts",
        provider.debug_get_raw_receipts(block).await?
    );
    ask!("debug_getBadBlocks", provider.debug_get_bad_blocks().await?);
    ask!(
        "debug_codeByHash",
        {
            let code = provider.get_code_at(world.contract).await?;
            provider
                .debug_code_by_hash(alloy::primitives::keccak256(&code), None)
                .await?
        },
        |code| code.is_some()
    );
    ask!(
        "debug_traceTransaction",
        provider
            .debug_trace_transaction(tx, GethDebugTracingOptions::default())
            .await?
            .try_into_default_frame()?,
        |frame| !frame.failed
    );
    for tracer in [
        GethDebugBuiltInTracerType::CallTracer,
        GethDebugBuiltInTracerType::FlatCallTracer,
        GethDebugBuiltInTracerType::FourByteTracer,
        GethDebugBuiltInTracerType::NoopTracer,
        GethDebugBuiltInTracerType::PreStateTracer,
    ] {
        let name = format!("debug_traceTransaction {tracer:?}");
        let options =
            GethDebugTracingOptions::new_tracer(GethDebugTracerType::BuiltInTracer(tracer));
        ask!(&name, provider.debug_trace_transaction(tx, options).await?);
    }
    let options = GethDebugTracingOptions::call_tracer(CallConfig::default().with_log());
    ask!(
        "debug_traceTransaction call",
        provider
            .debug_trace_transaction_call(tx, options.clone())
            .await?,
        |frame| frame.typ == "CREATE"
    );
    ask!(
        "debug_traceBlockByHash",
        provider
            .debug_trace_block_by_hash(world.block_hash, options.clone())
            .await?,
        |traces| traces.len() == 1
    );
    ask!(
        "debug_traceBlockByNumber",
        provider
            .debug_trace_block_by_number(world.block_number.into(), options.clone())
            .await?,
        |traces| traces.len() == 1
    );
    let call = TransactionRequest::default()
        .with_from(world.account)
        .with_to(world.contract)
        .with_input(
            Counter::addCall {
                amount: U256::from(1),
            }
            .abi_encode(),
        );
    let latest = BlockId::from(BlockNumberOrTag::Latest);
    ask!(
        "debug_traceCall",
        provider
            .debug_trace_call(
                call.clone(),
                latest,
                GethDebugTracingOptions::default().into()
            )
            .await?
            .try_into_default_frame()?
    );
    ask!(
        "debug_traceCall call",
        provider
            .debug_trace_call_callframe(call.clone(), latest, options.into())
            .await?,
        |frame| frame.logs.len() == 1
    );
    let options = GethDebugTracingOptions::prestate_tracer(PreStateConfig {
        diff_mode: Some(true),
        ..Default::default()
    });
    ask!(
        "debug_traceCall prestate",
        provider
            .debug_trace_call_prestate(call.clone(), latest, options.into())
            .await?
    );
    ask!(
        "trace_transaction",
        provider.trace_transaction(tx).await?,
        |traces| traces.len() == 1
    );
    ask!("trace_get", provider.trace_get(tx, 0).await?);
    ask!("trace_block", provider.trace_block(block).await?);
    ask!(
        "trace_filter",
        provider
            .trace_filter(
                &TraceFilter::default()
                    .from_block(0)
                    .to_block(world.block_number)
            )
            .await?
    );
    ask!(
        "trace_replayTransaction",
        provider
            .trace_replay_transaction(tx)
            .trace()
            .state_diff()
            .vm_trace()
            .await?,
        |replay| has_every_kind(replay)
    );
    ask!(
        "trace_replayBlockTransactions",
        provider
            .trace_replay_block_transactions(block)
            .trace()
            .state_diff()
            .vm_trace()
            .await?,
        |replays| has_every_kind(&replays[0].full_trace)
    );
    ask!(
        "trace_call",
        provider
            .trace_call(&call)
            .trace()
            .state_diff()
            .vm_trace()
            .await?,
        |replay| has_every_kind(replay)
    );
    let kinds = [TraceType::Trace, TraceType::StateDiff, TraceType::VmTrace];
    ask!(
        "trace_callMany",
        provider
            .trace_call_many(&[(call.clone(), &kinds), (call.clone(), &[])])
            .await?,
        |replays| has_every_kind(&replays[0]) && replays[1].trace.is_empty()
    );
}

fn has_every_kind(replay: &TraceResults) -> bool {
    let instructions = replay.vm_trace.as_ref().map_or(0, |found| found.ops.len());
    let accounts = replay.state_diff.as_ref().map_or(0, |found| found.len());
    replay.trace.len() == 1 && instructions > 10 && accounts > 1
}
