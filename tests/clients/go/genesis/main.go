// Command genesis reads genesis documents as a CometBFT node does when it starts: one JSON string
// with the text of a document in each line, and for each a line with what was read, or the error.
//
// "go build -modfile=cometbft-1.0.mod ./genesis" reads them as CometBFT 1.0 does.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"

	cmtbytes "github.com/cometbft/cometbft/libs/bytes"
	cmtjson "github.com/cometbft/cometbft/libs/json"
	"github.com/cometbft/cometbft/types"
)

var started = time.Now()

// answer has what was read of a document, or why it was refused.
type answer struct {
	Document       json.RawMessage   `json:"document,omitempty"`
	ValidatorsHash cmtbytes.HexBytes `json:"validators_hash,omitempty"`
	ConsensusHash  cmtbytes.HexBytes `json:"consensus_hash,omitempty"`
	Error          string            `json:"error,omitempty"`
}

func main() {
	lines := bufio.NewReader(os.Stdin)
	decoder, encoder := json.NewDecoder(lines), json.NewEncoder(os.Stdout)
	for decoder.More() {
		var document string
		err := decoder.Decode(&document)
		if err == nil {
			err = encoder.Encode(read([]byte(document)))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// read decodes a document and makes the first validator set, which panics where a node would.
func read(document []byte) (found answer) {
	defer func() {
		if reason := recover(); reason != nil {
			found = answer{Error: fmt.Sprintf("panic: %v", reason)}
		}
	}()
	genesis, err := types.GenesisDocFromJSON(document)
	if err != nil {
		return answer{Error: err.Error()}
	}
	if genesis.GenesisTime.After(started) && time.Since(genesis.GenesisTime) > 0 {
		// The time of reading, as the document has none.
		genesis.GenesisTime = time.Time{}
	}
	text, err := cmtjson.Marshal(genesis)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{
		Document:       text,
		ValidatorsHash: genesis.ValidatorHash(),
		ConsensusHash:  genesis.ConsensusParams.Hash(),
	}
}
