// Command rpc asks a node everything that CometBFT's own HTTP client can ask, and checks
// the answers with CometBFT's own types. It prints a line of JSON for each step, and ends
// with 1 at the first that fails.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/cometbft/cometbft/libs/bytes"
	rpchttp "github.com/cometbft/cometbft/rpc/client/http"
)

// patience is how long anything may take.
const patience = 100 * time.Second

// session is what the steps share: the client, and what an earlier step found out.
type session struct {
	*rpchttp.HTTP
	chainID string
	// made are the heights of the blocks that the steps made, each with one transaction.
	made []int64
	txs  [][]byte
}

type step struct {
	name string
	run  func(context.Context, *session) (any, error)
}

// line is what is printed of a step.
type line struct {
	Step  string `json:"step"`
	Found any    `json:"found,omitempty"`
	Error string `json:"error,omitempty"`
}

func main() {
	client, err := rpchttp.New(os.Args[1], "/websocket")
	if err == nil {
		err = client.Start()
	}
	if err != nil {
		fail("connect", err)
	}
	shared := &session{HTTP: client}
	for _, one := range slices.Concat(
		nodeSteps, txSteps, blockSteps, indexSteps, eventSteps, roundSteps,
	) {
		perform(one, shared)
	}
	if err := client.Stop(); err != nil {
		fail("disconnect", err)
	}
}

func perform(one step, shared *session) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	found, err := one.run(ctx, shared)
	if err != nil {
		fail(one.name, err)
	}
	print(line{Step: one.name, Found: found})
}

func fail(name string, err error) {
	print(line{Step: name, Error: err.Error()})
	os.Exit(1)
}

func print(said line) {
	written, err := json.Marshal(said)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(written))
}

// all is the first of some errors.
func all(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// same is an error unless two values read alike.
func same(what string, found, wanted any) error {
	if got, want := text(found), text(wanted); got != want {
		return fmt.Errorf("%s is %s and not %s", what, got, want)
	}
	return nil
}

func text(value any) string {
	if plain, ok := value.([]byte); ok {
		value = bytes.HexBytes(plain)
	}
	return fmt.Sprint(value)
}
