package main

import (
	"context"
	"encoding/base64"
	"errors"

	cmtjson "github.com/cometbft/cometbft/libs/json"
	"github.com/cometbft/cometbft/types"
)

var nodeSteps = []step{
	{"health", health},
	{"status", status},
	{"net_info", netInfo},
	{"genesis", genesis},
	{"genesis_chunked", genesisChunked},
	{"abci_info", abciInfo},
	{"batch", batch},
}

func health(ctx context.Context, s *session) (any, error) {
	return s.Health(ctx)
}

func status(ctx context.Context, s *session) (any, error) {
	found, err := s.Status(ctx)
	if err != nil {
		return nil, err
	}
	s.chainID = found.NodeInfo.Network
	key := found.ValidatorInfo.PubKey
	return found.NodeInfo, all(
		found.NodeInfo.Validate(),
		same("the validator's address", found.ValidatorInfo.Address, key.Address()),
	)
}

func netInfo(ctx context.Context, s *session) (any, error) {
	found, err := s.NetInfo(ctx)
	if err != nil {
		return nil, err
	}
	return found, same("n_peers", found.NPeers, len(found.Peers))
}

func genesis(ctx context.Context, s *session) (any, error) {
	found, err := s.Genesis(ctx)
	if err != nil {
		return nil, err
	}
	return len(found.Genesis.Validators), all(
		found.Genesis.ValidateAndComplete(),
		same("the chain", found.Genesis.ChainID, s.chainID),
	)
}

func genesisChunked(ctx context.Context, s *session) (any, error) {
	var document []byte
	for chunk, total := 0, 1; chunk < total; chunk++ {
		found, err := s.GenesisChunked(ctx, uint(chunk))
		if err != nil {
			return nil, err
		}
		data, err := base64.StdEncoding.DecodeString(found.Data)
		if err != nil {
			return nil, err
		}
		document, total = append(document, data...), found.TotalChunks
	}
	var read types.GenesisDoc
	if err := cmtjson.Unmarshal(document, &read); err != nil {
		return nil, err
	}
	whole, err := s.Genesis(ctx)
	if err != nil {
		return nil, err
	}
	return len(document), all(
		read.ValidateAndComplete(),
		same("its hash of validators", read.ValidatorHash(), whole.Genesis.ValidatorHash()),
	)
}

func abciInfo(ctx context.Context, s *session) (any, error) {
	found, err := s.ABCIInfo(ctx)
	if err != nil {
		return nil, err
	}
	return found.Response, nil
}

func batch(ctx context.Context, s *session) (any, error) {
	calls := s.NewBatch()
	if _, err := calls.Health(ctx); err != nil {
		return nil, err
	}
	status, err := calls.Status(ctx)
	if err != nil {
		return nil, err
	}
	found, err := calls.Send(ctx)
	if err != nil {
		return nil, err
	}
	if status.NodeInfo.Network != s.chainID {
		return nil, errors.New("the status of the batch is that of another chain")
	}
	return len(found), same("answers", len(found), 2)
}
