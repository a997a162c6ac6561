// Command genesisreader reads genesis documents as a node of the Cosmos SDK does when it starts:
// one JSON string with the text of a document in each line, and for each a line with what was
// read, or the error.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"

	cmtbytes "github.com/cometbft/cometbft/libs/bytes"
	cmtjson "github.com/cometbft/cometbft/libs/json"
	"github.com/cosmos/cosmos-sdk/x/genutil/types"
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
	decoder, encoder := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
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

// read decodes a document, hands it to CometBFT and makes the first validator set; both panic
// where a node would.
func read(document []byte) (found answer) {
	defer func() {
		if reason := recover(); reason != nil {
			found = answer{Error: fmt.Sprintf("panic: %v", reason)}
		}
	}()
	app, err := types.AppGenesisFromReader(bytes.NewReader(document))
	if err != nil {
		return answer{Error: err.Error()}
	}
	genesis, err := app.ToGenesisDoc()
	if err != nil {
		return answer{Error: err.Error()}
	}
	if err := genesis.ValidateAndComplete(); err != nil {
		return answer{Error: err.Error()}
	}
	if genesis.GenesisTime.After(started) && time.Since(genesis.GenesisTime) > 0 {
		// The time of reading, as the document has none.
		genesis.GenesisTime = time.Time{}
	}
	genesis.GenesisTime = genesis.GenesisTime.UTC()
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
