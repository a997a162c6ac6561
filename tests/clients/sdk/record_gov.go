package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"cosmossdk.io/math"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/query"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	distrtypes "github.com/cosmos/cosmos-sdk/x/distribution/types"
	govtypes "github.com/cosmos/cosmos-sdk/x/gov/types"
	v1 "github.com/cosmos/cosmos-sdk/x/gov/types/v1"
	"github.com/cosmos/cosmos-sdk/x/gov/types/v1beta1"
	minttypes "github.com/cosmos/cosmos-sdk/x/mint/types"
	slashingtypes "github.com/cosmos/cosmos-sdk/x/slashing/types"
	stakingtypes "github.com/cosmos/cosmos-sdk/x/staking/types"
	"github.com/cosmos/gogoproto/proto"
)

// The recording's form is documented in tests/clients/record_gov.py.

const (
	depositPeriod   = 30 * time.Minute
	votingPeriod    = time.Hour
	expeditedPeriod = 10 * time.Minute
	govQuery        = "/cosmos.gov.v1.Query/"
)

func govGenesis() *v1.GenesisState {
	made := v1.DefaultGenesisState()
	made.Constitution = "Proposals come to a vote."
	deposit, voting, expedited := depositPeriod, votingPeriod, expeditedPeriod
	made.Params.MaxDepositPeriod = &deposit
	made.Params.VotingPeriod = &voting
	made.Params.ExpeditedVotingPeriod = &expedited
	return made
}

func recordGov(out io.Writer) error {
	world, err := newModulesWorld(options{rewards: true, slashing: true, grants: true, gov: true})
	if err != nil {
		return err
	}
	made, err := newNetwork(world)
	if err != nil {
		return err
	}
	made.playGov()
	made.recorded.Queries = made.askGov()
	written := json.NewEncoder(out)
	written.SetEscapeHTML(false)
	written.SetIndent("", " ")
	return written.Encode(made.recorded)
}

func (w *world) authority() string { return authtypes.NewModuleAddress(govtypes.ModuleName).String() }

func stake(amount int64) sdk.Coins { return of(coin("stake", amount)) }

// whole is the deposit with which a vote begins.
var whole = stake(10_000_000)

func (n *network) propose(
	who string, deposit sdk.Coins, msgs ...proto.Message,
) *v1.MsgSubmitProposal {
	made := &v1.MsgSubmitProposal{InitialDeposit: deposit, Proposer: n.world.address(who).String(),
		Title: "A title", Summary: "What it <is> about", Metadata: "metadata"}
	for _, each := range msgs {
		made.Messages = append(made.Messages, anyOf(each))
	}
	return made
}

func expedited(made *v1.MsgSubmitProposal) *v1.MsgSubmitProposal {
	made.Expedited = true
	return made
}

func (n *network) proposeContent(
	who string, deposit sdk.Coins, content proto.Message,
) *v1beta1.MsgSubmitProposal {
	made := &v1beta1.MsgSubmitProposal{InitialDeposit: deposit,
		Proposer: n.world.address(who).String()}
	if content != nil {
		made.Content = anyOf(content)
	}
	return made
}

func text(title, description string) proto.Message {
	return &v1beta1.TextProposal{Title: title, Description: description}
}

// latest returns the number of the latest proposal.
func (n *network) latest() uint64 {
	var found v1.QueryProposalsResponse
	if err := n.asked(govQuery+"Proposals", &v1.QueryProposalsRequest{
		Pagination: &query.PageRequest{Reverse: true, Limit: 1}}, &found); err != nil {
		panic(err)
	}
	return found.Proposals[0].Id
}

func (n *network) putUp(who string, id uint64, amount sdk.Coins) *v1.MsgDeposit {
	return &v1.MsgDeposit{ProposalId: id, Depositor: n.world.address(who).String(), Amount: amount}
}

func (n *network) vote(who string, id uint64, option v1.VoteOption) *v1.MsgVote {
	return &v1.MsgVote{ProposalId: id, Voter: n.world.address(who).String(), Option: option}
}

// parts makes a vote of options and weights in turn.
func (n *network) parts(who string, id uint64, parts ...any) *v1.MsgVoteWeighted {
	made := &v1.MsgVoteWeighted{ProposalId: id, Voter: n.world.address(who).String()}
	for at := 0; at < len(parts); at += 2 {
		made.Options = append(made.Options, &v1.WeightedVoteOption{
			Option: v1.VoteOption(parts[at].(int)), Weight: parts[at+1].(string)})
	}
	return made
}

func (n *network) revoked(who string, id uint64) *v1.MsgCancelProposal {
	return &v1.MsgCancelProposal{ProposalId: id, Proposer: n.world.address(who).String()}
}

// accept lets two validators with the majority accept the latest proposal.
func (n *network) accept() {
	n.add("accept it", "alice", nil, n.vote("alice", n.latest(), v1.OptionYes))
	n.add("accept it, too", "bob", nil, n.vote("bob", n.latest(), v1.OptionYes))
}

// pass proposes messages and lets them be executed.
func (n *network) pass(name string, msgs ...proto.Message) {
	n.add(name, "grace", nil, n.propose("grace", whole, msgs...))
	n.step()
	n.accept()
	n.step()
	n.wait = votingPeriod
	n.step()
}

func (n *network) playGov() {
	n.step()
	n.add("delegate", "frank", nil, n.delegate("frank", "alice", coin("stake", 7_000_000_000)))
	n.add("delegate to two", "erin", nil, n.delegate("erin", "bob", coin("stake", 5_000_000_001)),
		n.delegate("erin", "dave", coin("stake", 3_333_333_333)))
	n.step()
	n.playText()
	n.playVotes()
	n.playExpedited()
	n.playSubmitErrors()
	n.playDepositErrors()
	n.playVoteErrors()
	n.playCancel()
	n.playExecution()
	n.playParams()
	n.playBurns()
	for n.height%20 != 0 {
		n.step()
	}
}

func (n *network) playText() {
	plan := `{"title": "A title", "summary": "What it <is> about", "authors": ["grace"]}`
	n.add("propose text", "grace", nil, changedMessage(n.propose("grace", stake(5_000_000)),
		func(m *v1.MsgSubmitProposal) { m.Metadata = plan }))
	n.add("propose text of v1beta1", "heidi", nil, n.proposeContent("heidi", stake(9_999_999),
		text("Title", "Description")))
	n.add("propose text of v1beta1, amino", "ivan", useAmino, n.proposeContent("ivan", whole,
		text("Title & <more>", "Description")))
	n.add("propose text, amino", "frank", useAmino, n.propose("frank", whole))
	n.add("propose a message, amino", "alice", useAmino, n.propose("alice", whole,
		n.from("alice", "ivan"), &banktypes.MsgSend{FromAddress: n.world.authority(),
			ToAddress: n.world.address("ivan").String(), Amount: stake(1)}))
	n.step()
	n.add("propose a message", "alice", nil, n.propose("alice", whole, &banktypes.MsgSend{
		FromAddress: n.world.authority(), ToAddress: n.world.address("ivan").String(),
		Amount: stake(1_000_000_000)}))
	n.add("deposit", "bob", nil, n.putUp("bob", 1, stake(1_000_000)))
	n.add("deposit, amino", "carol", useAmino, n.putUp("carol", 1, stake(999_999)))
	n.add("deposit again", "bob", nil, n.putUp("bob", 1, stake(3_000_000)))
	n.step()
	n.add("the last deposit", "dave", nil, n.putUp("dave", 1, stake(100_001)))
	n.add("deposit of v1beta1", "dave", nil, &v1beta1.MsgDeposit{ProposalId: 2,
		Depositor: n.world.address("dave").String(), Amount: stake(100_000)})
	n.add("deposit of v1beta1, amino", "bob", useAmino, &v1beta1.MsgDeposit{ProposalId: 2,
		Depositor: n.world.address("bob").String(), Amount: stake(100_000)})
	n.add("a deposit during the vote", "erin", nil, n.putUp("erin", 2, stake(200_000)))
	n.step()
	n.add("propose with a small deposit", "grace", nil, n.propose("grace", stake(100_000)))
	n.add("propose with another small deposit", "heidi", nil, n.propose("heidi", stake(2_000_000)))
	n.step()
}

func (n *network) playVotes() {
	n.add("vote", "alice", nil, changedMessage(n.vote("alice", 1, v1.OptionYes),
		func(m *v1.MsgVote) { m.Metadata = "because" }))
	n.add("vote, amino", "bob", useAmino, n.vote("bob", 1, v1.OptionNo))
	n.add("vote in parts", "erin", nil, n.parts("erin", 1, 1, "0.3", 2, "0.25", 3, "0.45"))
	n.add("vote in parts, amino", "carol", useAmino, n.parts("carol", 1, 1, "1"))
	n.step()
	n.add("vote in parts without a fraction, amino", "carol", useAmino,
		n.parts("carol", 1, 1, "1000000000000000000"))
	n.add("vote of v1beta1", "dave", nil, &v1beta1.MsgVote{ProposalId: 1,
		Voter: n.world.address("dave").String(), Option: v1beta1.OptionAbstain})
	n.add("vote of v1beta1, amino", "grace", useAmino, &v1beta1.MsgVote{ProposalId: 1,
		Voter: n.world.address("grace").String(), Option: v1beta1.OptionYes})
	n.add("vote in parts of v1beta1", "frank", nil, &v1beta1.MsgVoteWeighted{ProposalId: 1,
		Voter: n.world.address("frank").String(), Options: v1beta1.WeightedVoteOptions{
			{Option: v1beta1.OptionYes, Weight: dec("0.9")},
			{Option: v1beta1.OptionNoWithVeto, Weight: dec("0.1")}}})
	n.add("vote in parts of v1beta1, amino", "frank", useAmino, &v1beta1.MsgVoteWeighted{
		ProposalId: 2, Voter: n.world.address("frank").String(),
		Options: v1beta1.WeightedVoteOptions{{Option: v1beta1.OptionYes, Weight: dec("1")}}})
	n.step()
	n.add("vote again", "bob", nil, n.vote("bob", 1, v1.OptionNoWithVeto))
	n.add("vote on several", "alice", nil, n.vote("alice", 2, v1.OptionYes),
		n.vote("alice", 3, v1.OptionAbstain), n.vote("alice", 4, v1.OptionNoWithVeto))
	n.add("vote on several, too", "bob", nil, n.vote("bob", 2, v1.OptionYes),
		n.vote("bob", 3, v1.OptionAbstain), n.vote("bob", 4, v1.OptionNo))
	n.step()
	n.wait = depositPeriod
	n.step()
	n.add("undelegate during the vote", "frank", nil,
		n.undelegate("frank", "alice", coin("stake", 1_000_000_000)))
	n.step()
	n.wait = depositPeriod - 3*blockTime
	n.step()
	n.step()
	n.step()
	n.step()
}

func (n *network) playExpedited() {
	large := stake(50_000_000)
	n.add("propose at once", "grace", nil, expedited(n.propose("grace", large)))
	n.add("propose at once with a small deposit", "heidi", nil,
		expedited(n.propose("heidi", stake(10_000_000))))
	n.step()
	first := n.latest() - 1
	for _, who := range []string{"alice", "bob", "carol", "dave"} {
		n.add("vote at once", who, nil, n.vote(who, first, v1.OptionYes))
	}
	n.add("the rest for a vote at once", "ivan", nil, n.putUp("ivan", first+1, stake(40_000_000)))
	n.step()
	n.add("vote at once, without success", "alice", nil, n.vote("alice", first+1, v1.OptionYes))
	n.add("vote at once against", "bob", nil, n.vote("bob", first+1, v1.OptionNo))
	n.step()
	n.wait = expeditedPeriod
	n.step()
	n.add("vote again, as usual", "alice", nil, n.vote("alice", first+1, v1.OptionYes))
	n.step()
	n.wait = votingPeriod
	n.step()
}

func (n *network) playSubmitErrors() {
	submit := func(name string, change func(*v1.MsgSubmitProposal)) attempt {
		return attempt{"propose " + name, "ivan", changedMessage(n.propose("ivan", whole), change)}
	}
	metadata := func(name, text string) attempt {
		return submit(name, func(m *v1.MsgSubmitProposal) { m.Metadata = text })
	}
	messages := func(name string, msgs ...proto.Message) attempt {
		return attempt{"propose " + name, "ivan", n.propose("ivan", whole, msgs...)}
	}
	content := func(name string, given proto.Message) attempt {
		return attempt{"propose " + name, "ivan", n.proposeContent("ivan", whole, given)}
	}
	spend := &distrtypes.CommunityPoolSpendProposal{Title: "Title", Description: "Description",
		Recipient: n.world.address("ivan").String(), Amount: stake(1)}
	send := n.from("ivan", "bob", coin("token", 1))
	n.try(
		submit("without a title", func(m *v1.MsgSubmitProposal) { m.Title = "" }),
		submit("without a summary", func(m *v1.MsgSubmitProposal) { m.Summary = "" }),
		metadata("nothing", ""),
		metadata("another title", `{"title": "Other"}`),
		metadata("another summary", `{"TITLE": "A title", "summary": "Other"}`),
		metadata("no title", `null`),
		metadata("metadata that is a number", `5`),
		metadata("metadata of another form", `{"title": 5}`),
		metadata("metadata without an end", `{"title": "Other"`),
		metadata("long metadata", strings.Repeat("ä", 128)),
		submit("a long title", func(m *v1.MsgSubmitProposal) { m.Title = strings.Repeat("t", 256) }),
		submit("a long summary", func(m *v1.MsgSubmitProposal) {
			m.Summary = strings.Repeat("s", 10_201)
		}),
		submit("unsorted coins", func(m *v1.MsgSubmitProposal) {
			m.InitialDeposit = sdk.Coins{coin("token", 1), coin("stake", 1)}
		}),
		submit("other coins", func(m *v1.MsgSubmitProposal) {
			m.InitialDeposit = of(coin("stake", 10_000_000), coin("token", 1))
		}),
		submit("no deposit", func(m *v1.MsgSubmitProposal) { m.InitialDeposit = nil }),
		submit("a tiny deposit", func(m *v1.MsgSubmitProposal) { m.InitialDeposit = stake(99_999) }),
		submit("more than one has", func(m *v1.MsgSubmitProposal) {
			m.InitialDeposit = stake(9_000_000_000_000)
		}),
		messages("an own message", send),
		messages("an own message after another", &banktypes.MsgSend{FromAddress: n.world.authority(),
			ToAddress: n.world.address("ivan").String(), Amount: stake(1)}, send),
		messages("a message without a signer", &banktypes.MsgMultiSend{}),
		messages("a message of several", &banktypes.MsgMultiSend{Inputs: []banktypes.Input{
			{Address: n.world.authority(), Coins: stake(1)},
			{Address: n.world.address("bob").String(), Coins: stake(1)}}}),
		messages("a message of an invalid signer", &banktypes.MsgSend{FromAddress: "nobody"}),
		messages("contents", &v1.MsgExecLegacyContent{Authority: n.world.authority(),
			Content: anyOf(text("Title", "Description"))}),
		messages("contents without a handler", &v1.MsgExecLegacyContent{
			Authority: n.world.authority(), Content: anyOf(spend)}),
		messages("contents of another", &v1.MsgExecLegacyContent{
			Authority: n.world.address("ivan").String(), Content: anyOf(text("Title", "Text"))}),
		messages("missing contents", &v1.MsgExecLegacyContent{Authority: n.world.authority()}),
		content("no content", nil),
		content("a spend of v1beta1", spend),
		content("a blank title", text("  ", "Description")),
		content("a title that is too long", text(strings.Repeat("t", 141), "Description")),
		content("a blank description", text("Title", "")),
		content("a description that is too long", text("Title", strings.Repeat("d", 10_001))),
	)
	n.add("execute contents", "ivan", nil, &v1.MsgExecLegacyContent{
		Authority: n.world.address("ivan").String(), Content: anyOf(text("Title", "Text"))})
	n.addRefused("empty content", "ivan", nil, &v1beta1.MsgSubmitProposal{
		Proposer: n.world.address("ivan").String(), InitialDeposit: whole, Content: &codectypes.Any{}})
	n.addRefused("propose empty contents", "ivan", nil, n.propose("ivan", whole,
		&v1.MsgExecLegacyContent{Authority: n.world.authority(), Content: &codectypes.Any{}}))
	n.add("update the parameters", "ivan", nil, &v1.MsgUpdateParams{
		Authority: n.world.address("ivan").String(), Params: v1.DefaultParams()})
	n.add("not enough gas to propose", "ivan", func(d *draft) { d.gas = 70_000 },
		n.propose("ivan", whole))
	n.addRefused("content of another type", "ivan", nil, n.proposeContent("ivan", whole, send))
	n.step()
}

func (n *network) playDepositErrors() {
	n.add("propose for deposits", "grace", nil, n.propose("grace", stake(150_000)))
	n.step()
	open := n.latest()
	deposit := func(name string, id uint64, amount ...sdk.Coin) attempt {
		return attempt{"deposit " + name, "ivan", n.putUp("ivan", id, sdk.Coins(amount))}
	}
	n.try(
		deposit("for what does not exist", 999, coin("stake", 1_000_000)),
		deposit("for what has ended", 1, coin("stake", 1_000_000)),
		deposit("nothing", open),
		deposit("zero", open, coin("stake", 0)),
		deposit("unsorted coins", open, coin("token", 1), coin("stake", 1)),
		deposit("another coin", open, coin("token", 1_000_000)),
		deposit("too little", open, coin("stake", 99_999)),
		deposit("more than one has", open, coin("stake", 9_000_000_000_000)),
	)
	n.wait = depositPeriod
	n.step()
}

func (n *network) playVoteErrors() {
	n.add("propose for votes", "grace", nil, n.propose("grace", whole))
	n.add("propose without votes", "grace", nil, n.propose("grace", stake(150_000)))
	n.step()
	open := n.latest() - 1
	parts := func(name string, given ...any) attempt {
		return attempt{"vote " + name, "ivan", n.parts("ivan", open, given...)}
	}
	n.try(
		attempt{"vote on what does not exist", "ivan", n.vote("ivan", 999, v1.OptionYes)},
		attempt{"vote on what has ended", "ivan", n.vote("ivan", 1, v1.OptionYes)},
		attempt{"vote before the deposit", "ivan", n.vote("ivan", open+1, v1.OptionYes)},
		attempt{"vote for nothing", "ivan", n.vote("ivan", open, v1.OptionEmpty)},
		attempt{"vote for what does not exist", "ivan", n.vote("ivan", open, 7)},
		attempt{"vote for a negative option", "ivan", n.vote("ivan", open, -1)},
		attempt{"vote with long metadata", "ivan", changedMessage(n.vote("ivan", open, v1.OptionYes),
			func(m *v1.MsgVote) { m.Metadata = strings.Repeat("m", 256) })},
		parts("in no parts"),
		parts("for nothing in parts", 0, "1"),
		parts("for what does not exist in parts", 7, "1"),
		parts("with words", 1, "all"),
		parts("without a weight", 1, ""),
		parts("with a negative weight", 1, "-1"),
		parts("with no weight", 1, "0"),
		parts("with a large weight", 1, "1.1"),
		parts("with many decimals", 1, "0.1234567890123456789"),
		parts("twice", 1, "0.5", 1, "0.5"),
		parts("too much", 1, "0.5", 2, "0.6"),
		parts("too little", 1, "0.5", 2, "0.4"),
		parts("twice and too much", 1, "0.5", 1, "0.6"),
		attempt{"vote with a missing weight", "ivan", &v1beta1.MsgVoteWeighted{ProposalId: open,
			Voter: n.world.address("ivan").String(), Options: v1beta1.WeightedVoteOptions{
				{Option: v1beta1.OptionYes, Weight: math.LegacyDec{}}}}},
	)
	n.wait = votingPeriod
	n.step()
}

func (n *network) playCancel() {
	n.add("propose what is canceled", "grace", nil, n.propose("grace", stake(1_000_001)))
	n.add("propose what is canceled, too", "heidi", nil, n.propose("heidi", stake(9_000_001)))
	n.step()
	first := n.latest() - 1
	n.add("a deposit", "bob", nil, n.putUp("bob", first+1, stake(999_999)))
	n.step()
	n.add("a vote", "bob", nil, n.vote("bob", first+1, v1.OptionYes))
	n.add("another vote", "carol", nil, n.vote("carol", first+1, v1.OptionYes))
	n.try(
		attempt{"cancel another's", "ivan", n.revoked("ivan", first)},
		attempt{"cancel what does not exist", "ivan", n.revoked("ivan", 999)},
		attempt{"cancel what has ended", "grace", n.revoked("grace", 1)},
		attempt{"cancel", "grace", n.revoked("grace", first)},
		attempt{"cancel during the vote", "heidi", n.revoked("heidi", first+1)},
	)
	n.add("propose what is canceled later", "grace", nil, n.propose("grace", stake(1_000_001)))
	n.step()
	n.add("cancel, amino", "grace", useAmino, n.revoked("grace", n.latest()))
	n.step()
	n.add("cancel it again", "grace", nil, n.revoked("grace", first))
	n.step()
}

func (n *network) spendPool(to string, amount sdk.Coins) *distrtypes.MsgCommunityPoolSpend {
	return &distrtypes.MsgCommunityPoolSpend{Authority: n.world.authority(),
		Recipient: to, Amount: amount}
}

func (n *network) playExecution() {
	ivan := n.world.address("ivan").String()
	n.add("fund the community", "alice", nil, distrtypes.NewMsgFundCommunityPool(
		of(coin("stake", 5_000_000), coin("token", 77)), n.world.address("alice").String()))
	n.step()
	n.pass("spend of the community", n.spendPool(ivan, of(coin("stake", 1_000_000), coin("token", 7))))
	n.pass("spend all of the community twice", n.spendPool(ivan, of(coin("token", 10))),
		n.spendPool(ivan, of(coin("token", 61))))
	n.pass("spend nothing", n.spendPool(ivan, nil))
	n.pass("spend unsorted coins", n.spendPool(ivan, sdk.Coins{coin("token", 1), coin("stake", 1)}))
	n.pass("spend for nobody", n.spendPool("nobody", of(coin("token", 1))))
	n.pass("spend for a module", n.spendPool(
		authtypes.NewModuleAddress("mint").String(), of(coin("token", 1))))
	n.pass("send deposits", &banktypes.MsgSend{FromAddress: n.world.authority(), ToAddress: ivan,
		Amount: stake(900_000_000)})
	n.pass("contents", &v1.MsgExecLegacyContent{Authority: n.world.authority(),
		Content: anyOf(&v1beta1.TextProposal{Title: "Title", Description: "Text"})})
	n.pass("delegate as the module", &stakingtypes.MsgDelegate{
		DelegatorAddress: n.world.authority(), ValidatorAddress: n.world.validator("alice"),
		Amount: coin("stake", 1000)})
	n.pass("propose in a proposal", &v1.MsgSubmitProposal{Title: "Inside", Summary: "Inside",
		Metadata: "inside", Proposer: n.world.authority()})
	n.pass("a message that panics", &banktypes.MsgMultiSend{
		Inputs: []banktypes.Input{{Address: n.world.authority(), Coins: stake(1)}},
		Outputs: []banktypes.Output{
			{Address: ivan, Coins: sdk.Coins{huge()}}, {Address: ivan, Coins: sdk.Coins{huge()}}}})
}

// huge is the largest amount of coins.
func huge() sdk.Coin {
	all := math.NewInt(2).ToLegacyDec().Power(255).TruncateInt()
	return sdk.Coin{Denom: "stake", Amount: all}
}

func (n *network) playParams() {
	authority := n.world.authority()
	staking := stakingtypes.DefaultParams()
	staking.UnbondingTime, staking.MaxValidators = 2*time.Hour, 3
	slashing := slashingtypes.DefaultParams()
	slashing.SignedBlocksWindow = 15
	mint := minttypes.DefaultParams()
	mint.InflationMax, mint.GoalBonded = dec("0.3"), dec("0.5")
	distribution := distrtypes.DefaultParams()
	distribution.CommunityTax = dec("0.1")
	auth := authtypes.DefaultParams()
	auth.TxSizeCostPerByte = 11
	n.pass("update all parameters",
		&stakingtypes.MsgUpdateParams{Authority: authority, Params: staking},
		&slashingtypes.MsgUpdateParams{Authority: authority, Params: slashing},
		&minttypes.MsgUpdateParams{Authority: authority, Params: mint},
		&distrtypes.MsgUpdateParams{Authority: authority, Params: distribution},
		&authtypes.MsgUpdateParams{Authority: authority, Params: auth},
		&banktypes.MsgUpdateParams{Authority: authority, Params: banktypes.NewParams(true)},
		&banktypes.MsgSetSendEnabled{Authority: authority, SendEnabled: []*banktypes.SendEnabled{
			{Denom: "token", Enabled: false}, {Denom: "other", Enabled: true}}})
	n.add("send what is disabled", "ivan", nil, n.from("ivan", "bob", coin("token", 1)))
	n.step()
	n.pass("enable it", &banktypes.MsgSetSendEnabled{Authority: authority,
		UseDefaultFor: []string{"token"}})
	n.add("send what is enabled", "ivan", nil, n.from("ivan", "bob", coin("token", 1)))
	n.step()
	n.refuseParams()
}

// refuseParams proposes invalid parameters, each in a proposal of its own.
func (n *network) refuseParams() {
	authority := n.world.authority()
	var made []*v1.MsgSubmitProposal
	add := func(msg proto.Message) { made = append(made, n.propose("grace", whole, msg)) }
	for _, change := range []func(*stakingtypes.Params){
		func(p *stakingtypes.Params) { p.UnbondingTime = 0 },
		func(p *stakingtypes.Params) { p.UnbondingTime = -time.Second },
		func(p *stakingtypes.Params) { p.MaxValidators = 0 },
		func(p *stakingtypes.Params) { p.MaxEntries = 0 },
		func(p *stakingtypes.Params) { p.BondDenom = " " },
		func(p *stakingtypes.Params) { p.BondDenom = "1" },
		func(p *stakingtypes.Params) { p.MinCommissionRate = dec("-0.1") },
		func(p *stakingtypes.Params) { p.MinCommissionRate = dec("1.1") },
		func(p *stakingtypes.Params) { p.MinCommissionRate = math.LegacyDec{} },
	} {
		params := stakingtypes.DefaultParams()
		change(&params)
		add(&stakingtypes.MsgUpdateParams{Authority: authority, Params: params})
	}
	for _, change := range []func(*slashingtypes.Params){
		func(p *slashingtypes.Params) { p.SignedBlocksWindow = 0 },
		func(p *slashingtypes.Params) { p.MinSignedPerWindow = dec("-0.1") },
		func(p *slashingtypes.Params) { p.MinSignedPerWindow = dec("1.1") },
		func(p *slashingtypes.Params) { p.DowntimeJailDuration = -90 * time.Minute },
		func(p *slashingtypes.Params) { p.SlashFractionDoubleSign = dec("-0.1") },
		func(p *slashingtypes.Params) { p.SlashFractionDowntime = dec("1.1") },
	} {
		params := slashingtypes.DefaultParams()
		change(&params)
		add(&slashingtypes.MsgUpdateParams{Authority: authority, Params: params})
	}
	for _, change := range []func(*minttypes.Params){
		func(p *minttypes.Params) { p.MintDenom = "" },
		func(p *minttypes.Params) { p.InflationRateChange = dec("-0.1") },
		func(p *minttypes.Params) { p.InflationMax = dec("1.1") },
		func(p *minttypes.Params) { p.InflationMin = dec("1.1") },
		func(p *minttypes.Params) { p.InflationMin = dec("0.9") },
		func(p *minttypes.Params) { p.GoalBonded = dec("0") },
		func(p *minttypes.Params) { p.GoalBonded = dec("1.1") },
		func(p *minttypes.Params) { p.BlocksPerYear = 0 },
		func(p *minttypes.Params) { p.BlocksPerYear = 1 << 63 },
	} {
		params := minttypes.DefaultParams()
		change(&params)
		add(&minttypes.MsgUpdateParams{Authority: authority, Params: params})
	}
	for _, change := range []func(*distrtypes.Params){
		func(p *distrtypes.Params) { p.CommunityTax = dec("-0.1") },
		func(p *distrtypes.Params) { p.CommunityTax = dec("1.1") },
		func(p *distrtypes.Params) { p.BaseProposerReward = dec("0.1") },
	} {
		params := distrtypes.DefaultParams()
		change(&params)
		add(&distrtypes.MsgUpdateParams{Authority: authority, Params: params})
	}
	for _, change := range []func(*authtypes.Params){
		func(p *authtypes.Params) { p.TxSigLimit = 0 },
		func(p *authtypes.Params) { p.SigVerifyCostED25519 = 0 },
		func(p *authtypes.Params) { p.SigVerifyCostSecp256k1 = 0 },
		func(p *authtypes.Params) { p.MaxMemoCharacters = 0 },
		func(p *authtypes.Params) { p.TxSizeCostPerByte = 0 },
	} {
		params := authtypes.DefaultParams()
		change(&params)
		add(&authtypes.MsgUpdateParams{Authority: authority, Params: params})
	}
	add(&banktypes.MsgUpdateParams{Authority: authority, Params: banktypes.Params{
		SendEnabled: []*banktypes.SendEnabled{{Denom: "stake"}}}})
	add(&banktypes.MsgSetSendEnabled{Authority: authority, SendEnabled: []*banktypes.SendEnabled{
		{Denom: "stake"}, {Denom: "stake"}}})
	add(&banktypes.MsgSetSendEnabled{Authority: authority, SendEnabled: []*banktypes.SendEnabled{
		{Denom: "1"}}})
	add(&banktypes.MsgSetSendEnabled{Authority: authority, UseDefaultFor: []string{"1"}})
	for _, change := range n.invalidGovParams() {
		params := *govGenesis().Params
		change(&params)
		add(&v1.MsgUpdateParams{Authority: authority, Params: params})
	}
	for at, each := range made {
		n.add(fmt.Sprintf("invalid parameters %d", at), "grace", nil, each)
		if at%8 == 7 {
			n.step()
		}
	}
	n.step()
	last := n.latest()
	for id := last - uint64(len(made)) + 1; id <= last; id++ {
		n.add("accept it", "alice", nil, n.vote("alice", id, v1.OptionYes))
		n.add("accept it, too", "bob", nil, n.vote("bob", id, v1.OptionYes))
		if id%8 == 7 {
			n.step()
		}
	}
	n.step()
	n.wait = votingPeriod
	n.step()
}

func (n *network) invalidGovParams() []func(*v1.Params) {
	period := func(seconds int64) *time.Duration {
		made := time.Duration(seconds) * time.Second
		return &made
	}
	return []func(*v1.Params){
		func(p *v1.Params) { p.MinDeposit = nil },
		func(p *v1.Params) { p.ExpeditedMinDeposit = sdk.Coins{coin("token", 1), coin("stake", 1)} },
		func(p *v1.Params) { p.ExpeditedMinDeposit = p.MinDeposit },
		func(p *v1.Params) { p.Quorum = "" },
		func(p *v1.Params) { p.Quorum = "-0.1" },
		func(p *v1.Params) { p.Quorum = "1.1" },
		func(p *v1.Params) { p.Quorum = "1..1" },
		func(p *v1.Params) { p.Quorum = "1." },
		func(p *v1.Params) { p.Quorum = "0x1" },
		func(p *v1.Params) { p.Threshold = "0" },
		func(p *v1.Params) { p.Threshold = "1.1" },
		func(p *v1.Params) { p.ExpeditedThreshold = "0.5" },
		func(p *v1.Params) { p.ExpeditedThreshold = "all" },
		func(p *v1.Params) { p.VetoThreshold = "0" },
		func(p *v1.Params) { p.VetoThreshold = "1.01" },
		func(p *v1.Params) { p.VotingPeriod = period(0) },
		func(p *v1.Params) { p.ExpeditedVotingPeriod = period(-61) },
		func(p *v1.Params) { p.ExpeditedVotingPeriod = period(3600) },
		func(p *v1.Params) { p.MinInitialDepositRatio = "-1" },
		func(p *v1.Params) { p.MinInitialDepositRatio = "1.1" },
		func(p *v1.Params) { p.ProposalCancelRatio = "-1" },
		func(p *v1.Params) { p.ProposalCancelRatio = "1.1" },
		func(p *v1.Params) { p.ProposalCancelDest = "nobody" },
	}
}

func (n *network) playBurns() {
	update := func(change func(*v1.Params)) {
		params := *govGenesis().Params
		change(&params)
		n.pass("update governance", &v1.MsgUpdateParams{Authority: n.world.authority(), Params: params})
	}
	update(func(p *v1.Params) {
		p.BurnVoteQuorum, p.BurnVoteVeto, p.BurnProposalDepositPrevote = true, false, true
		p.MinInitialDepositRatio, p.MinDepositRatio = "0.333333333333333333", "0"
		p.MinDeposit = of(coin("stake", 10_000_000), coin("token", 20))
		p.ExpeditedMinDeposit = of(coin("stake", 20_000_000), coin("token", 30))
		p.ProposalCancelRatio = "0.25"
		p.ProposalCancelDest = authtypes.NewModuleAddress(distrtypes.ModuleName).String()
	})
	both := of(coin("stake", 3_333_333), coin("token", 7))
	n.try(
		attempt{"propose with one coin", "heidi", n.propose("heidi", stake(9_000_000))},
		attempt{"propose with a third", "heidi", n.propose("heidi", both)},
		attempt{"propose at once with a third", "heidi", expedited(n.propose("heidi", both))},
		attempt{"propose with less", "heidi", n.propose("heidi",
			of(coin("stake", 3_333_332), coin("token", 7)))},
	)
	n.add("propose what is canceled for the community", "ivan", nil, n.propose("ivan", both))
	n.step()
	n.add("a small deposit", "bob", nil, n.putUp("bob", n.latest(), of(coin("token", 1))))
	n.add("cancel for the community", "ivan", nil, n.revoked("ivan", n.latest()))
	n.add("propose without enough votes", "ivan", nil,
		n.propose("ivan", of(coin("stake", 10_000_000), coin("token", 20))))
	n.step()
	n.add("propose what is refused", "ivan", nil,
		n.propose("ivan", of(coin("stake", 10_000_000), coin("token", 21))))
	n.step()
	n.add("refuse it", "alice", nil, n.vote("alice", n.latest(), v1.OptionNoWithVeto))
	n.add("do not refuse it", "bob", nil, n.vote("bob", n.latest(), v1.OptionYes))
	n.step()
	n.wait = depositPeriod
	n.step()
	n.wait = votingPeriod
	n.step()
	whole = of(coin("stake", 10_000_000), coin("token", 20))
	update(func(p *v1.Params) {
		p.BurnVoteVeto, p.ProposalCancelDest = true, n.world.address("erin").String()
	})
	whole = stake(10_000_000)
	n.add("propose what is canceled for an account", "ivan", nil, n.propose("ivan", stake(100_001)))
	n.add("propose what is burned", "grace", nil, n.propose("grace", whole))
	n.step()
	n.add("cancel for an account", "ivan", nil, n.revoked("ivan", n.latest()-1))
	n.add("burn it", "alice", nil, n.vote("alice", n.latest(), v1.OptionNoWithVeto))
	n.step()
	n.wait = votingPeriod
	n.step()
	n.add("propose what stays", "ivan", nil, n.propose("ivan", whole))
	n.add("propose what waits for deposits", "ivan", nil, n.propose("ivan", stake(500_000)),
		n.proposeContent("ivan", stake(500_000), text("Title", "Text")))
	n.step()
	n.add("a vote that stays", "alice", nil, n.vote("alice", n.latest()-2, v1.OptionYes))
	n.add("another vote that stays", "erin", nil,
		n.parts("erin", n.latest()-2, 1, "0.5", 4, "0.5"))
	n.step()
}

func (n *network) askGov() []queryRecord {
	a := &modulesAsker{&asker{ledger: n.ledger}, n, n.world.address("absent").String()}
	last := n.latest()
	accounts := []string{n.world.address("alice").String(), n.world.address("erin").String(),
		n.world.address("ivan").String(), a.absent, "nobody", ""}
	a.now(&v1.QueryConstitutionRequest{})
	for _, kind := range []string{"", "deposit", "voting", "tallying", "other"} {
		a.now(&v1.QueryParamsRequest{ParamsType: kind},
			&v1beta1.QueryParamsRequest{ParamsType: kind})
	}
	for _, id := range []uint64{0, 1, 2, 3, 4, 5, last - 2, last - 1, last, last + 1} {
		a.now(&v1.QueryProposalRequest{ProposalId: id}, &v1.QueryTallyResultRequest{ProposalId: id},
			&v1.QueryVotesRequest{ProposalId: id}, &v1.QueryDepositsRequest{ProposalId: id},
			&v1beta1.QueryProposalRequest{ProposalId: id},
			&v1beta1.QueryTallyResultRequest{ProposalId: id},
			&v1beta1.QueryVotesRequest{ProposalId: id}, &v1beta1.QueryDepositsRequest{ProposalId: id})
	}
	for _, id := range []uint64{0, 1, last - 2} {
		for _, who := range accounts {
			a.now(&v1.QueryVoteRequest{ProposalId: id, Voter: who},
				&v1.QueryDepositRequest{ProposalId: id, Depositor: who},
				&v1beta1.QueryVoteRequest{ProposalId: id, Voter: who},
				&v1beta1.QueryDepositRequest{ProposalId: id, Depositor: who})
		}
	}
	for height := int64(4); height < 14; height += 3 {
		a.at(height, &v1.QueryTallyResultRequest{ProposalId: 1})
		a.at(height, &v1.QueryVotesRequest{ProposalId: 1})
		a.at(height, &v1.QueryDepositsRequest{ProposalId: 1})
	}
	for status := range int32(6) {
		a.now(&v1.QueryProposalsRequest{ProposalStatus: v1.ProposalStatus(status),
			Pagination: &query.PageRequest{Limit: 5, CountTotal: true}})
	}
	a.now(&v1.QueryProposalsRequest{ProposalStatus: 9, Pagination: &query.PageRequest{Limit: 2}})
	for _, who := range accounts {
		a.now(&v1.QueryProposalsRequest{Voter: who, Pagination: &query.PageRequest{Limit: 3}},
			&v1.QueryProposalsRequest{Depositor: who, Pagination: &query.PageRequest{Limit: 3}},
			&v1beta1.QueryProposalsRequest{Depositor: who,
				ProposalStatus: v1beta1.StatusDepositPeriod})
	}
	a.pages(govQuery+"Proposals", &v1.QueryProposalsResponse{},
		func(page *query.PageRequest) message {
			return &v1.QueryProposalsRequest{ProposalStatus: v1.StatusVotingPeriod, Pagination: page}
		})
	a.pages(govQuery+"Votes", &v1.QueryVotesResponse{},
		func(page *query.PageRequest) message {
			return &v1.QueryVotesRequest{ProposalId: last - 2, Pagination: page}
		})
	a.pages(govQuery+"Deposits", &v1.QueryDepositsResponse{},
		func(page *query.PageRequest) message {
			return &v1.QueryDepositsRequest{ProposalId: last - 2, Pagination: page}
		})
	return a.found
}
