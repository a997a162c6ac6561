//go:build upgrade

package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"cosmossdk.io/math"
	evidencetypes "cosmossdk.io/x/evidence/types"
	"cosmossdk.io/x/feegrant"
	upgradetypes "cosmossdk.io/x/upgrade/types"
	"github.com/cosmos/cosmos-sdk/client/grpc/reflection"
	"github.com/cosmos/cosmos-sdk/crypto/keys/multisig"
	cryptotypes "github.com/cosmos/cosmos-sdk/crypto/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	txtypes "github.com/cosmos/cosmos-sdk/types/tx"
	"github.com/cosmos/cosmos-sdk/x/auth/migrations/legacytx"
	"github.com/cosmos/cosmos-sdk/x/authz"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	distrtypes "github.com/cosmos/cosmos-sdk/x/distribution/types"
	"github.com/cosmos/cosmos-sdk/x/params/types/proposal"
	pooltypes "github.com/cosmos/cosmos-sdk/x/protocolpool/types"
	"github.com/cosmos/gogoproto/proto"
)

// The recording's form is documented in tests/clients/record_pool.py.

func recordPool(ctx context.Context, given options, out io.Writer) error {
	world, err := newModulesWorld(options{rewards: true, slashing: true, grants: true, pool: true})
	if err != nil {
		return err
	}
	made, err := newNetwork(world)
	if err != nil {
		return err
	}
	made.recorded.Governor = world.address("alice").String()
	made.playPool()
	made.recorded.Queries = made.askPool()
	return made.print(ctx, given, out)
}

func (n *network) spend(by, to string, amount ...sdk.Coin) *pooltypes.MsgCommunityPoolSpend {
	return &pooltypes.MsgCommunityPoolSpend{Authority: n.world.address(by).String(),
		Recipient: n.world.address(to).String(), Amount: amount}
}

func (n *network) stream(
	by, to, percentage string, expiry *time.Time,
) *pooltypes.MsgCreateContinuousFund {
	return &pooltypes.MsgCreateContinuousFund{Authority: n.world.address(by).String(),
		Recipient: n.world.address(to).String(), Percentage: dec(percentage), Expiry: expiry}
}

func (n *network) end(by, to string) *pooltypes.MsgCancelContinuousFund {
	return &pooltypes.MsgCancelContinuousFund{Authority: n.world.address(by).String(),
		Recipient: n.world.address(to).String()}
}

func (n *network) poolParams(by string, frequency uint64, denoms ...string) proto.Message {
	return &pooltypes.MsgUpdateParams{Authority: n.world.address(by).String(),
		Params: pooltypes.Params{
			EnabledDistributionDenoms: denoms, DistributionFrequency: frequency}}
}

func (n *network) fundPool(who string, amount ...sdk.Coin) *pooltypes.MsgFundCommunityPool {
	return &pooltypes.MsgFundCommunityPool{
		Depositor: n.world.address(who).String(), Amount: amount}
}

func (n *network) playPool() {
	tokens := func(d *draft) { d.fee = of(coin("token", 3000)) }
	n.step()
	n.step()
	n.add("fund", "bob", nil, n.fundPool("bob", coin("stake", 1_000_000)))
	n.add("fund with two coins, amino", "carol", useAmino,
		n.fundPool("carol", coin("stake", 5), coin("token", 700)))
	n.add("a fee of tokens", "dave", tokens, n.from("dave", "ivan", coin("token", 5)))
	n.step()
	n.add("spend", "alice", nil, n.spend("alice", "stranger", coin("stake", 1000)))
	n.add("spend, amino", "alice", useAmino, n.spend("alice", "bob", coin("token", 100)))
	n.add("a fund", "alice", nil, n.stream("alice", "bob", "0.1", nil))
	n.add("a fund for a time, amino", "alice", useAmino,
		n.stream("alice", "stranger", "0.333333333333333333", n.in(30*time.Second)))
	n.add("a fund for nearly no time", "alice", nil, n.stream("alice", "grace", "0.2", n.in(6*time.Second)))
	n.step()
	n.playPoolErrors()
	n.add("every third block, tokens too", "alice", nil, n.poolParams("alice", 3, "stake", "token"))
	n.step()
	for range 4 {
		n.add("a fee of tokens", "dave", tokens, n.from("dave", "ivan", coin("token", 5)))
		n.step()
	}
	n.add("end a fund", "alice", nil, n.end("alice", "bob"))
	n.add("end it again", "alice", nil, n.end("alice", "bob"))
	n.step()
	n.add("end a fund, amino", "alice", useAmino, n.end("alice", "erin"))
	n.add("other coins, amino", "alice", useAmino, n.poolParams("alice", 1, "token", "stake"))
	n.step()
	n.add("a fund of everything", "alice", nil, n.stream("alice", "frank", "1", nil))
	n.add("a fund of the rest", "alice", nil, n.stream("alice", "frank", "0.5", nil))
	n.step()
	n.add("a fee of tokens", "dave", tokens, n.from("dave", "ivan", coin("token", 5)))
	n.step()
	n.add("no coins, amino", "alice", useAmino, n.poolParams("alice", 1))
	n.step()
	n.step()
	n.add("coins that nobody has", "alice", nil, n.poolParams("alice", 1, "absent", "stake"))
	n.step()
	n.wait = time.Hour
	n.step()
	n.add("all funds have ended", "bob", nil, n.fundPool("bob", coin("stake", 5)))
	n.add("end the fund of everything", "alice", nil, n.end("alice", "frank"))
	n.add("a fund for two days", "alice", nil, n.stream("alice", "bob", "0.5", n.in(48*time.Hour)))
	for n.height < 40 {
		n.step()
	}
}

func (n *network) playPoolErrors() {
	past := n.at.Add(-time.Second)
	unsorted := []sdk.Coin{coin("token", 1), coin("stake", 1)}
	nobody := n.spend("alice", "bob", coin("stake", 1))
	nobody.Recipient = "nobody"
	streamed := n.stream("alice", "bob", "0.1", nil)
	streamed.Recipient = ""
	ended := n.end("alice", "bob")
	ended.Recipient = "nobody"
	empty := n.stream("alice", "erin", "0.1", nil)
	empty.Percentage = math.LegacyDec{}
	n.try(
		attempt{"fund with nothing", "bob", n.fundPool("bob")},
		attempt{"fund with unsorted coins", "bob", n.fundPool("bob", unsorted...)},
		attempt{"fund with a zero coin", "bob", n.fundPool("bob", coin("stake", 0))},
		attempt{"fund with too much", "erin", n.fundPool("erin", coin("stake", 2_000_000_000_000))},
		attempt{"fund the pool of distribution", "bob", n.fund("bob", coin("stake", 5))},
		attempt{"spend the pool of distribution", "bob", &distrtypes.MsgCommunityPoolSpend{
			Authority: n.world.address("bob").String()}},
		attempt{"spend by another", "bob", n.spend("bob", "bob", coin("stake", 1))},
		attempt{"a fund by another", "bob", n.stream("bob", "carol", "0.1", nil)},
		attempt{"end by another", "bob", n.end("bob", "bob")},
		attempt{"parameters by another", "bob", n.poolParams("bob", 1, "stake")},
		attempt{"spend nothing", "alice", n.spend("alice", "bob")},
		attempt{"spend unsorted coins", "alice", n.spend("alice", "bob", unsorted...)},
		attempt{"spend too much", "alice", n.spend("alice", "bob", coin("stake", 900_000_000_000))},
		attempt{"spend to a module", "alice", n.spend("alice", "mint", coin("stake", 1))},
		attempt{"spend to nobody", "alice", nobody},
		attempt{"a fund for a module", "alice", n.stream("alice", "mint", "0.1", nil)},
		attempt{"a fund for an empty address", "alice", streamed},
		attempt{"a second fund", "alice", n.stream("alice", "bob", "0.1", nil)},
		attempt{"a fund of zero", "alice", n.stream("alice", "erin", "0", nil)},
		attempt{"a fund of no number", "alice", empty},
		attempt{"a negative fund", "alice", n.stream("alice", "erin", "-0.1", nil)},
		attempt{"a fund above one", "alice", n.stream("alice", "erin", "1.000000000000000001", nil)},
		attempt{"a fund in the past", "alice", n.stream("alice", "erin", "0.1", &past)},
		attempt{"too many funds", "alice", n.stream("alice", "erin", "0.8", nil)},
		attempt{"the rest in a fund", "alice", n.stream("alice", "erin", "0.123", n.in(time.Hour))},
		attempt{"end what does not exist", "alice", n.end("alice", "dave")},
		attempt{"end for nobody", "alice", ended},
		attempt{"a frequency of zero", "alice", n.poolParams("alice", 0, "stake")},
		attempt{"coins twice", "alice", n.poolParams("alice", 1, "stake", "token", "stake")},
		attempt{"an invalid coin", "alice", n.poolParams("alice", 1, "1")},
	)
}

func (n *network) askPool() []queryRecord {
	a := &modulesAsker{&asker{ledger: n.ledger}, n, n.world.address("absent").String()}
	for _, height := range []int64{0, 1, 8, a.height + 1} {
		a.at(height, &pooltypes.QueryCommunityPoolRequest{})
		a.at(height, &pooltypes.QueryContinuousFundsRequest{})
		a.at(height, &pooltypes.QueryParamsRequest{})
		a.at(height, &distrtypes.QueryCommunityPoolRequest{})
	}
	for _, of := range a.accountAddresses() {
		a.now(&pooltypes.QueryContinuousFundRequest{Recipient: of})
		a.at(8, &pooltypes.QueryContinuousFundRequest{Recipient: of})
	}
	a.now(&upgradetypes.QueryCurrentPlanRequest{},
		&upgradetypes.QueryAppliedPlanRequest{Name: "none"},
		&upgradetypes.QueryAppliedPlanRequest{},
		//nolint:staticcheck // clients still ask for it
		&upgradetypes.QueryUpgradedConsensusStateRequest{LastHeight: 7},
		&upgradetypes.QueryModuleVersionsRequest{},
		&upgradetypes.QueryModuleVersionsRequest{ModuleName: "bank"},
		&upgradetypes.QueryModuleVersionsRequest{ModuleName: "none"},
		&upgradetypes.QueryAuthorityRequest{},
		&proposal.QuerySubspacesRequest{},
		&proposal.QueryParamsRequest{},
		&proposal.QueryParamsRequest{Subspace: "staking"},
		&proposal.QueryParamsRequest{Subspace: "staking", Key: "BondDenom"},
		&proposal.QueryParamsRequest{Subspace: "none", Key: "BondDenom"})
	a.txs()
	const reflected = "/cosmos.base.reflection.v1beta1.ReflectionService/"
	a.raw("all interfaces", reflected+"ListAllInterfaces", nil, 0, false)
	names := a.registry.ListAllInterfaces()
	for _, name := range append(names, "none", "") {
		a.raw("implementations of "+name, reflected+"ListImplementations",
			must(proto.Marshal(&reflection.ListImplementationsRequest{InterfaceName: name})), 0, false)
	}
	return a.found
}

// txs asks to decode and encode transactions.
func (a *modulesAsker) txs() {
	ask := func(name, method string, request proto.Message) {
		a.raw(method+" "+name, txService+method, must(proto.Marshal(request)), 0, false)
	}
	for _, block := range a.network.recorded.Blocks {
		for _, each := range block.Txs {
			ask(each.Name, "TxDecode", &txtypes.TxDecodeRequest{TxBytes: each.Bytes})
			var tx txtypes.Tx
			if err := a.codec.Unmarshal(each.Bytes, &tx); err != nil {
				panic(err)
			}
			ask(each.Name, "TxEncode", &txtypes.TxEncodeRequest{Tx: &tx})
		}
	}
	first := a.network.recorded.Blocks[2].Txs[0].Bytes
	broken := map[string][]byte{
		"half": first[:len(first)/2], "nothing": {}, "one byte": {7}, "text": []byte("what is this"),
		"an unknown field": append(first[:len(first):len(first)], 0x22, 0),
		"no message":       a.sign(draft{gas: 5, signers: by("alice")}),
	}
	for _, name := range ordered(broken) {
		ask(name, "TxDecode", &txtypes.TxDecodeRequest{TxBytes: broken[name]})
	}
	a.raw("TxDecode present and empty", txService+"TxDecode", []byte{0x0a, 0}, 0, false)
	ask("without a transaction", "TxEncode", &txtypes.TxEncodeRequest{})
	ask("an empty one", "TxEncode", &txtypes.TxEncodeRequest{Tx: &txtypes.Tx{}})
	ask("an empty body", "TxEncode", &txtypes.TxEncodeRequest{Tx: &txtypes.Tx{
		Body: &txtypes.TxBody{Memo: "é"}, Signatures: [][]byte{{}, {1}}}})
	std := legacytx.StdTx{
		Msgs: []sdk.Msg{a.network.from("bob", "carol", coin("stake", 9), coin("token", 1))},
		Fee:  legacytx.StdFee{Amount: of(coin("stake", 77)), Gas: 200_000},
		Signatures: []legacytx.StdSignature{
			{PubKey: a.world.keys["bob"].PubKey(), Signature: []byte("signed")}}, //nolint:staticcheck // amino
		Memo: "hi <&>", TimeoutHeight: 7,
	}
	changes := map[string]func(*legacytx.StdTx){
		"a send":      func(*legacytx.StdTx) {},
		"nothing":     func(s *legacytx.StdTx) { *s = legacytx.StdTx{} },
		"a payer":     func(s *legacytx.StdTx) { s.Fee.Payer, s.Memo = a.absent, "" },
		"no messages": func(s *legacytx.StdTx) { s.Msgs = nil },
	}
	for _, name := range ordered(changes) {
		made := std
		changes[name](&made)
		ask(name, "TxEncodeAmino", &txtypes.TxEncodeAminoRequest{
			AminoJson: string(must(a.amino.MarshalJSON(made)))})
		ask(name, "TxDecodeAmino", &txtypes.TxDecodeAminoRequest{
			AminoBinary: must(a.amino.Marshal(made))})
	}
	var several legacytx.StdTx
	for _, each := range a.network.aminoMessages() {
		made := std
		made.Msgs, several.Msgs = []sdk.Msg{each}, append(several.Msgs, each)
		ask(proto.MessageName(each), "TxEncodeAmino", &txtypes.TxEncodeAminoRequest{
			AminoJson: string(must(a.amino.MarshalJSON(made)))})
		ask(proto.MessageName(each), "TxDecodeAmino", &txtypes.TxDecodeAminoRequest{
			AminoBinary: must(a.amino.Marshal(made))})
	}
	two := multisig.NewLegacyAminoPubKey(2, []cryptotypes.PubKey{
		a.world.keys["alice"].PubKey(), publicKey(consensusKey("bob"))})
	several.Signatures = []legacytx.StdSignature{{PubKey: two, Signature: []byte{1}}, {}} //nolint:staticcheck // amino
	ask("several", "TxEncodeAmino", &txtypes.TxEncodeAminoRequest{
		AminoJson: string(must(a.amino.MarshalJSON(several)))})
	whole := must(a.amino.Marshal(several))
	ask("several", "TxDecodeAmino", &txtypes.TxDecodeAminoRequest{AminoBinary: whole})
	for _, size := range []int{4, 5, 6, 10, 100, len(whole) - 1} {
		ask(fmt.Sprintf("the first %d bytes", size), "TxDecodeAmino",
			&txtypes.TxDecodeAminoRequest{AminoBinary: whole[:size]})
	}
	for _, text := range []string{
		`{"msg":[{"type":"none","value":{}}]}`, `{"msg":[{"value":{}}]}`, `{"msg":7}`, `{"fee":[]}`,
		`{"msg":[{"type":"cosmos-sdk/MsgSend","value":{"amount":[{"denom":"a","amount":"x"}]}}]}`,
		`{"memo":5}`, `{"timeout_height":"x"}`, `{"timeout_height":7}`, `{"none":7}`, `[]`, `null`,
		`{"signatures":[{"pub_key":{"type":"none","value":""}}]}`, `{"signatures":[{"signature":"!"}]}`,
	} {
		ask(text, "TxEncodeAmino", &txtypes.TxEncodeAminoRequest{
			AminoJson: `{"type":"cosmos-sdk/StdTx","value":` + text + `}`})
	}
	for _, text := range []string{"", "{}", "x", `{"type":"cosmos-sdk/StdTx"}`, `{"type":"x","value":{}}`} {
		ask(text, "TxEncodeAmino", &txtypes.TxEncodeAminoRequest{AminoJson: text})
	}
	for _, raw := range [][]byte{nil, {1}, {1, 2, 3, 4, 5}, first} {
		ask(string(raw), "TxDecodeAmino", &txtypes.TxDecodeAminoRequest{AminoBinary: raw})
	}
}

// aminoMessages have all types of fields.
func (n *network) aminoMessages() []sdk.Msg {
	alice, bob := n.world.address("alice").String(), n.world.address("bob").String()
	until := n.world.genesis.GenesisTime
	sent := &banktypes.MsgMultiSend{
		Inputs:  []banktypes.Input{{Address: alice, Coins: of(coin("stake", 3), coin("token", 4))}},
		Outputs: []banktypes.Output{{Address: bob, Coins: of(coin("stake", 3))}, {}}}
	edited := n.editRate("alice", "0.123")
	edited.Description.Moniker = "a <&> \u2028 \"é"
	granted := n.grantFees("alice", "bob", &feegrant.AllowedMsgAllowance{
		Allowance: anyOf(&feegrant.PeriodicAllowance{
			Basic:  feegrant.BasicAllowance{SpendLimit: of(coin("stake", 9)), Expiration: &until},
			Period: 90 * time.Minute, PeriodSpendLimit: of(coin("stake", 2)), PeriodReset: until}),
		AllowedMessages: []string{"/a", "/b"}})
	executed := n.exec("bob", n.from("alice", "bob", coin("stake", 1)),
		n.exec("alice", n.stream("alice", "bob", "0.25", &until)))
	authorized := &authz.MsgGrant{Granter: alice, Grantee: bob,
		Grant: must(authz.NewGrant(until, authz.NewGenericAuthorization("/a"), n.in(time.Hour)))}
	limited := &authz.MsgGrant{Granter: alice, Grantee: bob, Grant: must(authz.NewGrant(
		until, banktypes.NewSendAuthorization(of(coin("token", 6)), nil), nil))}
	submitted := must(evidencetypes.NewMsgSubmitEvidence(n.world.address("alice"),
		&evidencetypes.Equivocation{Height: 7, Time: until, Power: 1, ConsensusAddress: bob}))
	return []sdk.Msg{
		sent, edited, granted, executed, authorized, limited, submitted,
		n.world.create("carol", 5_000_000_000), n.editMinimum("bob", 0), n.unjail("bob"),
		n.delegate("alice", "bob", coin("stake", 0)), n.withdrawTo("alice", "bob"),
		n.poolParams("alice", 7, "stake", "token"), n.poolParams("alice", 0),
		n.fundPool("bob"), &banktypes.MsgSend{}, n.cancel("alice", "bob", coin("stake", 1), 77),
	}
}
