package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	rpcclient "github.com/cometbft/cometbft/rpc/client"
	ctypes "github.com/cometbft/cometbft/rpc/core/types"
	"github.com/cometbft/cometbft/types"
)

// waiting is how many transactions are looked at in the mempool.
const waiting = 5

var txSteps = []step{
	{"check_tx", checkTx},
	{"broadcast_tx_commit", broadcastCommit},
	{"broadcast_tx_sync", broadcastWith(rpcclient.ABCIClient.BroadcastTxSync)},
	{"broadcast_tx_async", broadcastWith(rpcclient.ABCIClient.BroadcastTxAsync)},
	{"a transaction that is refused", refused},
	{"a transaction that is known", known},
	{"unconfirmed_txs", unconfirmedTxs},
	{"num_unconfirmed_txs", numUnconfirmedTxs},
	{"abci_query", abciQuery},
}

// newTx is a pair that no step sent before.
func newTx(s *session) types.Tx {
	tx := types.Tx(fmt.Sprintf("go%d=value%d", len(s.txs), len(s.txs)))
	s.txs = append(s.txs, tx)
	return tx
}

func checkTx(ctx context.Context, s *session) (any, error) {
	good, err := s.CheckTx(ctx, types.Tx("a=b"))
	if err != nil {
		return nil, err
	}
	bad, err := s.CheckTx(ctx, types.Tx("no pair"))
	if err != nil {
		return nil, err
	}
	return bad, all(same("a good code", good.Code, 0), same("a bad code", bad.Code, 2))
}

func broadcastCommit(ctx context.Context, s *session) (any, error) {
	tx := newTx(s)
	found, err := s.BroadcastTxCommit(ctx, tx)
	if err != nil {
		return nil, err
	}
	s.made = append(s.made, found.Height)
	return found, all(
		same("the hash", found.Hash, tx.Hash()),
		same("the codes", found.CheckTx.Code+found.TxResult.Code, 0),
	)
}

type broadcast func(
	rpcclient.ABCIClient, context.Context, types.Tx,
) (*ctypes.ResultBroadcastTx, error)

// broadcastWith sends a transaction and waits until it can be asked for.
func broadcastWith(send broadcast) func(context.Context, *session) (any, error) {
	return func(ctx context.Context, s *session) (any, error) {
		tx := newTx(s)
		found, err := send(s, ctx, tx)
		if err != nil {
			return nil, err
		}
		committed, err := s.awaitTx(ctx, tx)
		if err != nil {
			return nil, err
		}
		s.made = append(s.made, committed.Height)
		return committed.Height, all(
			same("the code", found.Code, 0),
			same("the hash", found.Hash, tx.Hash()),
			same("the committed", committed.Tx, tx),
		)
	}
}

func (s *session) awaitTx(ctx context.Context, tx types.Tx) (*ctypes.ResultTx, error) {
	for {
		found, err := s.Tx(ctx, tx.Hash(), false)
		if err == nil {
			return found, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func refused(ctx context.Context, s *session) (any, error) {
	found, err := s.BroadcastTxSync(ctx, types.Tx("no pair"))
	if err != nil {
		return nil, err
	}
	return found, same("the code", found.Code, 2)
}

func known(ctx context.Context, s *session) (any, error) {
	_, err := s.BroadcastTxSync(ctx, s.txs[0])
	if err == nil {
		return nil, errors.New("it was taken twice")
	}
	return err.Error(), nil
}

func unconfirmedTxs(ctx context.Context, s *session) (any, error) {
	limit := waiting
	found, err := s.UnconfirmedTxs(ctx, &limit)
	if err != nil {
		return nil, err
	}
	return found, same("the count", found.Count, len(found.Txs))
}

func numUnconfirmedTxs(ctx context.Context, s *session) (any, error) {
	return s.NumUnconfirmedTxs(ctx)
}

func abciQuery(ctx context.Context, s *session) (any, error) {
	found, err := s.ABCIQuery(ctx, "/key", []byte("go0"))
	if err != nil {
		return nil, err
	}
	if _, err := s.ABCIQuery(ctx, "/key", []byte("nobody")); err != nil {
		return nil, err
	}
	return found.Response, all(
		same("the value", string(found.Response.Value), "value0"),
		same("the key", string(found.Response.Key), "go0"),
	)
}
