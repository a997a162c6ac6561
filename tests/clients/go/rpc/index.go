package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/cometbft/cometbft/types"
)

var indexSteps = []step{
	{"tx", tx},
	{"a transaction that is not there", noSuchTx},
	{"tx_search", txSearch},
	{"block_search", blockSearch},
}

// wording is an error unless a node's refusal reads as programs expect it.
func wording(refusal error, pattern string) (any, error) {
	if refusal == nil {
		return nil, errors.New("it was not refused")
	}
	if !regexp.MustCompile(pattern).MatchString(refusal.Error()) {
		return nil, fmt.Errorf("it reads %q and not %q", refusal, pattern)
	}
	return refusal.Error(), nil
}

func tx(ctx context.Context, s *session) (any, error) {
	found, err := s.Tx(ctx, types.Tx(s.txs[1]).Hash(), true)
	if err != nil {
		return nil, err
	}
	here, err := s.Header(ctx, &found.Height)
	if err != nil {
		return nil, err
	}
	return found.Index, all(
		found.Proof.Validate(here.Header.DataHash),
		same("what is proved", found.Proof.Data, found.Tx),
		same("the transaction", found.Tx, types.Tx(s.txs[1])),
		same("the height", found.Height, s.made[1]),
	)
}

func noSuchTx(ctx context.Context, s *session) (any, error) {
	_, err := s.Tx(ctx, make([]byte, 32), false)
	return wording(err, `tx \(0{64}\) not found`)
}

func txSearch(ctx context.Context, s *session) (any, error) {
	var heights []int64
	// Others may have sent some before.
	query := fmt.Sprintf("app.creator='Cosmoshi' AND tx.height>=%d", s.made[0])
	perPage := 2
	for page, total := 1, 1; len(heights) < total; page++ {
		found, err := s.TxSearch(ctx, query, true, &page, &perPage, "asc")
		if err != nil {
			return nil, err
		}
		for _, one := range found.Txs {
			here, err := s.Header(ctx, &one.Height)
			if err != nil {
				return nil, err
			}
			if err := one.Proof.Validate(here.Header.DataHash); err != nil {
				return nil, err
			}
			heights = append(heights, one.Height)
		}
		total = found.TotalCount
	}
	return len(heights), same("what was found", heights, s.made)
}

func blockSearch(ctx context.Context, s *session) (any, error) {
	query := fmt.Sprintf("block.height <= %d", s.made[1])
	found, err := s.BlockSearch(ctx, query, nil, nil, "desc")
	if err != nil {
		return nil, err
	}
	for _, one := range found.Blocks {
		if err := one.Block.ValidateBasic(); err != nil {
			return nil, err
		}
	}
	return found.TotalCount, all(
		same("the count", found.TotalCount, s.made[1]),
		same("the first", found.Blocks[0].Block.Height, s.made[1]),
	)
}
