package main

import (
	"context"

	"github.com/cometbft/cometbft/state"
	"github.com/cometbft/cometbft/types"
)

var blockSteps = []step{
	{"block", block},
	{"block_by_hash", blockByHash},
	{"header", header},
	{"commit", commit},
	{"validators", validators},
	{"block_results", blockResults},
	{"consensus_params", consensusParams},
	{"blockchain", blockchain},
	{"a height that is not there", noSuchHeight},
}

func block(ctx context.Context, s *session) (any, error) {
	found, err := s.Block(ctx, &s.made[1])
	if err != nil {
		return nil, err
	}
	parts, err := found.Block.MakePartSet(types.BlockPartSizeBytes)
	if err != nil {
		return nil, err
	}
	return found.BlockID, all(
		found.Block.ValidateBasic(),
		found.BlockID.ValidateBasic(),
		same("the chain", found.Block.ChainID, s.chainID),
		same("the hash", found.BlockID.Hash, found.Block.Hash()),
		same("the part set", found.BlockID.PartSetHeader, parts.Header()),
		same("the hash of the commit", found.Block.LastCommitHash, found.Block.LastCommit.Hash()),
		same("the hash of the data", found.Block.DataHash, found.Block.Data.Hash()),
		same("the hash of the evidence", found.Block.EvidenceHash, found.Block.Evidence.Hash()),
	)
}

func blockByHash(ctx context.Context, s *session) (any, error) {
	wanted, err := s.Block(ctx, &s.made[1])
	if err != nil {
		return nil, err
	}
	found, err := s.BlockByHash(ctx, wanted.BlockID.Hash)
	if err != nil {
		return nil, err
	}
	none, err := s.BlockByHash(ctx, make([]byte, 32))
	if err != nil {
		return nil, err
	}
	return none, all(
		found.Block.ValidateBasic(),
		same("the id", found.BlockID, wanted.BlockID),
		same("the hash", found.Block.Hash(), wanted.BlockID.Hash),
	)
}

func header(ctx context.Context, s *session) (any, error) {
	found, err := s.Header(ctx, &s.made[1])
	if err != nil {
		return nil, err
	}
	again, err := s.HeaderByHash(ctx, found.Header.Hash())
	if err != nil {
		return nil, err
	}
	return found.Header.Hash(), all(
		found.Header.ValidateBasic(),
		same("the header by its hash", again.Header.Hash(), found.Header.Hash()),
	)
}

func commit(ctx context.Context, s *session) (any, error) {
	found, err := s.Commit(ctx, &s.made[1])
	if err != nil {
		return nil, err
	}
	latest, err := s.Commit(ctx, nil)
	if err != nil {
		return nil, err
	}
	return latest.CanonicalCommit, all(
		found.SignedHeader.ValidateBasic(s.chainID),
		latest.SignedHeader.ValidateBasic(s.chainID),
		same("whether the block after it is there", found.CanonicalCommit, true),
	)
}

// members is the validator set of a height, fetched page by page.
func (s *session) members(ctx context.Context, height int64) (*types.ValidatorSet, int, error) {
	var found []*types.Validator
	perPage, page := 2, 1
	for ; ; page++ {
		here, err := s.Validators(ctx, &height, &page, &perPage)
		if err != nil {
			return nil, page, err
		}
		found = append(found, here.Validators...)
		if len(found) >= here.Total {
			break
		}
	}
	set, err := types.ValidatorSetFromExistingValidators(found)
	return set, page, err
}

func validators(ctx context.Context, s *session) (any, error) {
	set, pages, err := s.members(ctx, s.made[1])
	if err != nil {
		return nil, err
	}
	signed, err := s.Commit(ctx, &s.made[1])
	if err != nil {
		return nil, err
	}
	after := s.made[1] + 1
	next, err := s.Block(ctx, &after)
	if err != nil {
		return nil, err
	}
	id := signed.Commit.BlockID
	return pages, all(
		set.ValidateBasic(),
		same("the hash of the validators", signed.ValidatorsHash, set.Hash()),
		set.VerifyCommit(s.chainID, id, signed.Height, signed.Commit),
		set.VerifyCommit(s.chainID, id, signed.Height, next.Block.LastCommit),
	)
}

func blockResults(ctx context.Context, s *session) (any, error) {
	found, err := s.BlockResults(ctx, &s.made[1])
	if err != nil {
		return nil, err
	}
	after := s.made[1] + 1
	next, err := s.Header(ctx, &after)
	if err != nil {
		return nil, err
	}
	results := state.TxResultsHash(found.TxsResults)
	return len(found.TxsResults[0].Events), all(
		same("the hash of the results", next.Header.LastResultsHash, results),
		same("the app hash", next.Header.AppHash, found.AppHash),
	)
}

func consensusParams(ctx context.Context, s *session) (any, error) {
	found, err := s.ConsensusParams(ctx, &s.made[1])
	if err != nil {
		return nil, err
	}
	here, err := s.Header(ctx, &s.made[1])
	if err != nil {
		return nil, err
	}
	hash := here.Header.ConsensusHash
	return found.ConsensusParams, all(
		found.ConsensusParams.ValidateBasic(),
		same("the hash of the parameters", hash, found.ConsensusParams.Hash()),
	)
}

func blockchain(ctx context.Context, s *session) (any, error) {
	low, high := s.made[0], s.made[2]
	found, err := s.BlockchainInfo(ctx, low, high)
	if err != nil {
		return nil, err
	}
	for _, meta := range found.BlockMetas {
		if err := meta.ValidateBasic(); err != nil {
			return nil, err
		}
	}
	return len(found.BlockMetas), same("the count", len(found.BlockMetas), high-low+1)
}

func noSuchHeight(ctx context.Context, s *session) (any, error) {
	height := int64(1_000_000)
	_, err := s.Commit(ctx, &height)
	return wording(err, `height \d+ must be less than or equal to`)
}
