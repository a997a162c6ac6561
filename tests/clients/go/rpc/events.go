package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	ctypes "github.com/cometbft/cometbft/rpc/core/types"
	"github.com/cometbft/cometbft/types"
)

// capacity is that of a subscription's channel: CometBFT's client drops what comes while it is
// full, and by default it holds one event. Blocks come while a transaction's event is awaited.
const capacity = 1000

// subscriber is a name that the client does not send.
const subscriber = "steps"

var eventSteps = []step{
	{"subscribe", subscribe},
	{"unsubscribe", unsubscribe},
}

type events <-chan ctypes.ResultEvent

// next is what the next event carries.
func next[T types.TMEventData](ctx context.Context, from events) (T, error) {
	var data T
	select {
	case event := <-from:
		data, ok := event.Data.(T)
		if !ok {
			return data, fmt.Errorf("the event is a %T", event.Data)
		}
		return data, nil
	case <-ctx.Done():
		return data, fmt.Errorf("no event came: %w", ctx.Err())
	}
}

func (s *session) follow(ctx context.Context, event string) (events, error) {
	return s.Subscribe(ctx, subscriber, types.QueryForEvent(event).String(), capacity)
}

func subscribe(ctx context.Context, s *session) (any, error) {
	blocks, err := s.follow(ctx, types.EventNewBlock)
	if err != nil {
		return nil, err
	}
	headers, err := s.follow(ctx, types.EventNewBlockHeader)
	if err != nil {
		return nil, err
	}
	txs, err := s.follow(ctx, types.EventTx)
	if err != nil {
		return nil, err
	}
	return s.await(ctx, blocks, headers, txs)
}

// hear calls send until an event comes: the client does not wait for the answer to a
// subscription, and a block may come before the node has read it.
func hear[T types.TMEventData](
	ctx context.Context, from events, send func(context.Context) error,
) (T, error) {
	for {
		if err := send(ctx); err != nil {
			var none T
			return none, err
		}
		short, cancel := context.WithTimeout(ctx, 5*time.Second)
		found, err := next[T](short, from)
		cancel()
		if err == nil || ctx.Err() != nil {
			return found, err
		}
	}
}

// sendOne sends a new transaction.
func (s *session) sendOne(ctx context.Context) error {
	_, err := s.BroadcastTxSync(ctx, newTx(s))
	return err
}

// sent tells whether a transaction is one of this program's.
func (s *session) sent(tx []byte) error {
	for _, one := range s.txs {
		if bytes.Equal(one, tx) {
			return nil
		}
	}
	return fmt.Errorf("nobody sent %q", tx)
}

// await takes the events of the block that a transaction is in.
func (s *session) await(ctx context.Context, blocks, headers, txs events) (any, error) {
	tx, err := hear[types.EventDataTx](ctx, txs, s.sendOne)
	if err != nil {
		return nil, err
	}
	block, err := blockOf(ctx, blocks, tx.Height)
	if err != nil {
		return nil, err
	}
	header, err := headerOf(ctx, headers, tx.Height)
	if err != nil {
		return nil, err
	}
	return tx.Height, all(
		s.sent(tx.Tx),
		block.Block.ValidateBasic(),
		same("the id", block.BlockID.Hash, block.Block.Hash()),
		same("the header", header.Header.Hash(), block.BlockID.Hash),
		s.sent(block.Block.Txs[tx.Index]),
	)
}

func blockOf(ctx context.Context, from events, height int64) (types.EventDataNewBlock, error) {
	for {
		found, err := next[types.EventDataNewBlock](ctx, from)
		if err != nil || found.Block.Height == height {
			return found, err
		}
	}
}

func headerOf(
	ctx context.Context, from events, height int64,
) (types.EventDataNewBlockHeader, error) {
	for {
		found, err := next[types.EventDataNewBlockHeader](ctx, from)
		if err != nil || found.Header.Height == height {
			return found, err
		}
	}
}

func unsubscribe(ctx context.Context, s *session) (any, error) {
	query := types.QueryForEvent(types.EventTx).String()
	if err := s.Unsubscribe(ctx, subscriber, query); err != nil {
		return nil, err
	}
	if err := s.UnsubscribeAll(ctx, subscriber); err != nil {
		return nil, err
	}
	// What is subscribed anew is heard as before.
	txs, err := s.follow(ctx, types.EventTx)
	if err != nil {
		return nil, err
	}
	tx, err := hear[types.EventDataTx](ctx, txs, s.sendOne)
	return tx.Height, all(
		err,
		s.sent(tx.Tx),
		s.UnsubscribeAll(ctx, subscriber),
	)
}
