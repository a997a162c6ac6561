package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/cometbft/cometbft/crypto/ed25519"
	"github.com/cometbft/cometbft/types"
)

// Those of one step are followed at once: a node takes five of a client.
var roundSteps = []step{
	{"events of a round", roundEvents(
		types.EventNewRound, types.EventNewRoundStep, types.EventCompleteProposal,
		types.EventPolka, types.EventVote,
	)},
	{"more events of a round", roundEvents(
		types.EventLock, types.EventValidBlock, types.EventNewBlockEvents,
	)},
	{"changes of validators", validatorEvents},
}

// roundEvents follows events of a block's making, and checks the first of each.
func roundEvents(names ...string) func(context.Context, *session) (any, error) {
	return func(ctx context.Context, s *session) (any, error) {
		followed := make([]events, len(names))
		for place, name := range names {
			var err error
			if followed[place], err = s.follow(ctx, name); err != nil {
				return nil, err
			}
		}
		for place, name := range names {
			data, err := hear[types.TMEventData](ctx, followed[place], s.sendOne)
			if err == nil {
				err = s.check(ctx, data)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		return names, s.UnsubscribeAll(ctx, subscriber)
	}
}

// check looks into what the making of a block told.
func (s *session) check(ctx context.Context, data types.TMEventData) error {
	switch told := data.(type) {
	case types.EventDataVote:
		return s.verify(ctx, told.Vote)
	case types.EventDataCompleteProposal:
		return told.BlockID.ValidateBasic()
	case types.EventDataNewRound:
		set, _, err := s.members(ctx, told.Height)
		if err != nil {
			return err
		}
		address, _ := set.GetByIndex(told.Proposer.Index)
		return same("the proposer", told.Proposer.Address, types.Address(address))
	case types.EventDataRoundState, types.EventDataNewBlockEvents:
		return nil
	default:
		return fmt.Errorf("the event is a %T", data)
	}
}

func (s *session) verify(ctx context.Context, vote *types.Vote) error {
	set, _, err := s.members(ctx, vote.Height)
	if err != nil {
		return err
	}
	_, voter := set.GetByAddress(vote.ValidatorAddress)
	if voter == nil {
		return fmt.Errorf("%X is no validator", vote.ValidatorAddress)
	}
	return all(vote.ValidateBasic(), vote.Verify(s.chainID, voter.PubKey))
}

// validatorEvents brings in a validator that is never heard of again.
func validatorEvents(ctx context.Context, s *session) (any, error) {
	updates, err := s.follow(ctx, types.EventValidatorSetUpdates)
	if err != nil {
		return nil, err
	}
	var keys []string
	told, err := hear[types.EventDataValidatorSetUpdates](ctx, updates,
		func(ctx context.Context) error {
			key := ed25519.GenPrivKey().PubKey()
			keys = append(keys, key.Address().String())
			encoded := base64.StdEncoding.EncodeToString(key.Bytes())
			tx := types.Tx(fmt.Sprintf("val=ed25519!%s!1", encoded))
			_, err := s.BroadcastTxCommit(ctx, tx)
			return err
		})
	if err != nil {
		return nil, err
	}
	changed := told.ValidatorUpdates
	if err := same("how many changed", len(changed), 1); err != nil {
		return nil, err
	}
	return changed, all(
		same("who changed", slices.Contains(keys, changed[0].Address.String()), true),
		same("the address", changed[0].Address, changed[0].PubKey.Address()),
	)
}
