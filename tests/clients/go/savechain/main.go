// Command savechain copies the chain of a node into the stores of CometBFT's own packages,
// so that `cometbft inspect` serves it: savechain URL HOME.
//
// HOME is made by `cometbft init` and gets the node's genesis. Each block is checked against
// its id and its parent; a copy that was interrupted goes on where it ended.
package main

import (
	"context"
	"fmt"
	"os"

	dbm "github.com/cometbft/cometbft-db"
	abci "github.com/cometbft/cometbft/abci/types"
	cfg "github.com/cometbft/cometbft/config"
	"github.com/cometbft/cometbft/libs/log"
	rpchttp "github.com/cometbft/cometbft/rpc/client/http"
	"github.com/cometbft/cometbft/state"
	"github.com/cometbft/cometbft/state/indexer"
	"github.com/cometbft/cometbft/state/indexer/block"
	"github.com/cometbft/cometbft/state/txindex"
	"github.com/cometbft/cometbft/store"
	"github.com/cometbft/cometbft/types"
)

// saver has the stores, and the state after the last block in them.
type saver struct {
	node   *rpchttp.HTTP
	blocks *store.BlockStore
	states state.Store
	txs    txindex.TxIndexer
	events indexer.BlockIndexer
	state  state.State
}

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: savechain URL HOME"))
	}
	height, err := run(context.Background(), os.Args[1], os.Args[2])
	if err != nil {
		fail(err)
	}
	fmt.Println(height)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// run copies what is missing; it returns the height of the last block.
func run(ctx context.Context, url, home string) (int64, error) {
	node, err := rpchttp.New(url, "/websocket")
	if err != nil {
		return 0, err
	}
	saver, err := open(ctx, node, home)
	if err != nil {
		return 0, err
	}
	defer saver.close()
	status, err := node.Status(ctx)
	if err != nil {
		return 0, err
	}
	last := status.SyncInfo.LatestBlockHeight
	for height := saver.next(); height <= last; height++ {
		if err := saver.save(ctx, height); err != nil {
			return 0, fmt.Errorf("block %d: %w", height, err)
		}
	}
	return last, nil
}

func open(ctx context.Context, node *rpchttp.HTTP, home string) (*saver, error) {
	config := cfg.DefaultConfig().SetRoot(home)
	genesis, err := node.Genesis(ctx)
	if err != nil {
		return nil, err
	}
	if err := genesis.Genesis.SaveAs(config.GenesisFile()); err != nil {
		return nil, err
	}
	stores := map[string]dbm.DB{}
	for _, name := range []string{"blockstore", "state"} {
		context := &cfg.DBContext{ID: name, Config: config}
		if stores[name], err = cfg.DefaultDBProvider(context); err != nil {
			return nil, err
		}
	}
	states := state.NewStore(stores["state"], state.StoreOptions{})
	current, err := states.LoadFromDBOrGenesisDoc(genesis.Genesis)
	if err != nil {
		return nil, err
	}
	if current.LastBlockHeight == 0 {
		if err := states.Save(current); err != nil {
			return nil, err
		}
	}
	txs, events, err := block.IndexerFromConfig(
		config, cfg.DefaultDBProvider, genesis.Genesis.ChainID)
	if err != nil {
		return nil, err
	}
	events.SetLogger(log.NewNopLogger())
	blocks := store.NewBlockStore(stores["blockstore"])
	return &saver{node, blocks, states, txs, events, current}, nil
}

func (s *saver) close() {
	_ = s.blocks.Close()
	_ = s.states.Close()
}

// next is the height that follows the last block whose state is saved.
func (s *saver) next() int64 {
	return max(s.state.LastBlockHeight+1, s.state.InitialHeight)
}

func (s *saver) save(ctx context.Context, height int64) error {
	found, err := s.node.Block(ctx, &height)
	if err != nil {
		return err
	}
	commit, err := s.node.Commit(ctx, &height)
	if err != nil {
		return err
	}
	results, err := s.node.BlockResults(ctx, &height)
	if err != nil {
		return err
	}
	parts, err := s.check(found.Block, found.BlockID, commit.Commit)
	if err != nil {
		return err
	}
	response := &abci.ResponseFinalizeBlock{
		Events:                results.FinalizeBlockEvents,
		TxResults:             results.TxsResults,
		ValidatorUpdates:      results.ValidatorUpdates,
		ConsensusParamUpdates: results.ConsensusParamUpdates,
		AppHash:               results.AppHash,
	}
	// The state comes last: a copy that was interrupted goes on behind it.
	if s.blocks.Height() < height {
		s.blocks.SaveBlock(found.Block, parts, commit.Commit)
	}
	if err := s.states.SaveFinalizeBlockResponse(height, response); err != nil {
		return err
	}
	if err := s.index(found.Block, response); err != nil {
		return err
	}
	return s.advance(found.BlockID, &found.Block.Header, response)
}

// check returns the parts of a block that follows, has the id that it is given, and was
// committed by this commit.
func (s *saver) check(
	found *types.Block, id types.BlockID, commit *types.Commit,
) (*types.PartSet, error) {
	if err := found.ValidateBasic(); err != nil {
		return nil, err
	}
	if !found.LastBlockID.Equals(s.state.LastBlockID) {
		return nil, fmt.Errorf("its parent is %v, not %v", found.LastBlockID, s.state.LastBlockID)
	}
	parts, err := found.MakePartSet(types.BlockPartSizeBytes)
	if err != nil {
		return nil, err
	}
	own := types.BlockID{Hash: found.Hash(), PartSetHeader: parts.Header()}
	if !own.Equals(id) || !own.Equals(commit.BlockID) {
		return nil, fmt.Errorf("its id is %v, not %v and %v", own, id, commit.BlockID)
	}
	return parts, nil
}

func (s *saver) index(found *types.Block, response *abci.ResponseFinalizeBlock) error {
	header := types.EventDataNewBlockEvents{
		Height: found.Height,
		Events: response.Events,
		NumTxs: int64(len(found.Txs)),
	}
	if err := s.events.Index(header); err != nil {
		return err
	}
	batch := txindex.NewBatch(int64(len(found.Txs)))
	for at, tx := range found.Txs {
		result := &abci.TxResult{
			Height: found.Height, Index: uint32(at), Tx: tx, Result: *response.TxResults[at],
		}
		if err := batch.Add(result); err != nil {
			return err
		}
	}
	return s.txs.AddBatch(batch)
}

// advance saves the state after a block, as CometBFT's state/execution.go does.
func (s *saver) advance(
	id types.BlockID, header *types.Header, response *abci.ResponseFinalizeBlock,
) error {
	after := s.state.Copy()
	after.LastValidators, after.Validators = after.Validators, after.NextValidators.Copy()
	if len(response.ValidatorUpdates) > 0 {
		changes, err := types.PB2TM.ValidatorUpdates(response.ValidatorUpdates)
		if err != nil {
			return err
		}
		if err := after.NextValidators.UpdateWithChangeSet(changes); err != nil {
			return err
		}
		after.LastHeightValidatorsChanged = header.Height + 2
	}
	after.NextValidators.IncrementProposerPriority(1)
	if update := response.ConsensusParamUpdates; update != nil {
		after.ConsensusParams = after.ConsensusParams.Update(update)
		after.LastHeightConsensusParamsChanged = header.Height + 1
	}
	after.LastBlockHeight, after.LastBlockID = header.Height, id
	after.LastBlockTime, after.AppHash = header.Time, response.AppHash
	after.LastResultsHash = state.TxResultsHash(response.TxResults)
	s.state = after
	return s.states.Save(after)
}
