// Command prunechain deletes what a node that has stopped has of heights below others:
// prunechain HOME BLOCK RESULTS. Blocks begin at BLOCK then, and states, validators and results
// at RESULTS. The indexes stay as they are.
package main

import (
	"fmt"
	"os"
	"strconv"

	dbm "github.com/cometbft/cometbft-db"
	cfg "github.com/cometbft/cometbft/config"
	"github.com/cometbft/cometbft/state"
	"github.com/cometbft/cometbft/store"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("usage: prunechain HOME BLOCK RESULTS")
	}
	config := cfg.DefaultConfig().SetRoot(args[0])
	lowest := [2]int64{}
	for place, text := range args[1:] {
		height, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return err
		}
		lowest[place] = height
	}
	stores := [2]dbm.DB{}
	for place, name := range []string{"blockstore", "state"} {
		found, err := cfg.DefaultDBProvider(&cfg.DBContext{ID: name, Config: config})
		if err != nil {
			return err
		}
		defer found.Close()
		stores[place] = found
	}
	return prune(store.NewBlockStore(stores[0]),
		state.NewStore(stores[1], state.StoreOptions{}), lowest)
}

func prune(blocks *store.BlockStore, states state.Store, lowest [2]int64) error {
	base := blocks.Base()
	current, err := states.Load()
	if err != nil {
		return err
	}
	if _, _, err := blocks.PruneBlocks(lowest[0], current); err != nil {
		return err
	}
	return states.PruneStates(base, lowest[1], current.LastBlockHeight)
}
