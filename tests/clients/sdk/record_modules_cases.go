package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cosmossdk.io/math"
	evidencetypes "cosmossdk.io/x/evidence/types"
	abci "github.com/cometbft/cometbft/abci/types"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	"github.com/cosmos/cosmos-sdk/crypto/keys/ed25519"
	cryptotypes "github.com/cosmos/cosmos-sdk/crypto/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	distrtypes "github.com/cosmos/cosmos-sdk/x/distribution/types"
	minttypes "github.com/cosmos/cosmos-sdk/x/mint/types"
	slashingtypes "github.com/cosmos/cosmos-sdk/x/slashing/types"
	stakingtypes "github.com/cosmos/cosmos-sdk/x/staking/types"
	"github.com/cosmos/gogoproto/proto"
)

const distrQuery = "/cosmos.distribution.v1beta1.Query/"

// operators own a validator at some height; frank and erin create theirs later.
var operators = []string{"alice", "bob", "carol", "dave", "erin", "frank"}

// attempt is a transaction of one message.
type attempt struct {
	name string
	who  string
	msg  proto.Message
}

// add queues a transaction; change alters it before it is signed.
func (n *network) add(name, who string, change func(*draft), msgs ...proto.Message) {
	made := draft{msgs: msgs, gas: 1_000_000, signers: n.signers(who)}
	if change != nil {
		change(&made)
	}
	for _, each := range made.signers {
		n.sequences[each.name]++
	}
	n.queued = append(n.queued, sent{name, n.sign(made)})
}

func (n *network) signers(names ...string) []signer {
	found := by(names...)
	for at := range found {
		found[at].sequence = n.sequences[found[at].name]
	}
	return found
}

// addRefused queues a transaction that the ante handler refuses.
func (n *network) addRefused(name, who string, change func(*draft), msgs ...proto.Message) {
	before := n.sequences[who]
	n.add(name, who, change, msgs...)
	n.sequences[who] = before
}

// try makes blocks of at most six of the attempts, each signed in the mode.
func (n *network) try(attempts ...attempt) {
	for some := range slices.Chunk(attempts, 6) {
		for _, each := range some {
			n.add(each.name, each.who, nil, each.msg)
		}
		n.step()
	}
}

// run makes blocks of random transactions, the first one with what is queued already.
func (n *network) run(blocks int) {
	for range blocks {
		for range 1 + n.random.Intn(4) {
			n.addRandom()
		}
		n.step()
	}
}

// jump makes the next block later than usual.
func (n *network) jump(by time.Duration) {
	n.wait = by
	n.run(1)
}

func (n *network) delegate(who, to string, of sdk.Coin) *stakingtypes.MsgDelegate {
	return &stakingtypes.MsgDelegate{DelegatorAddress: n.world.address(who).String(),
		ValidatorAddress: n.world.validator(to), Amount: of}
}

func (n *network) undelegate(who, from string, of sdk.Coin) *stakingtypes.MsgUndelegate {
	return &stakingtypes.MsgUndelegate{DelegatorAddress: n.world.address(who).String(),
		ValidatorAddress: n.world.validator(from), Amount: of}
}

func (n *network) redelegate(who, from, to string, of sdk.Coin) *stakingtypes.MsgBeginRedelegate {
	return &stakingtypes.MsgBeginRedelegate{DelegatorAddress: n.world.address(who).String(),
		ValidatorSrcAddress: n.world.validator(from), ValidatorDstAddress: n.world.validator(to),
		Amount: of}
}

func (n *network) cancel(
	who, from string, of sdk.Coin, height int64,
) *stakingtypes.MsgCancelUnbondingDelegation {
	return &stakingtypes.MsgCancelUnbondingDelegation{
		DelegatorAddress: n.world.address(who).String(),
		ValidatorAddress: n.world.validator(from), Amount: of, CreationHeight: height}
}

func (n *network) withdraw(who, from string) *distrtypes.MsgWithdrawDelegatorReward {
	return &distrtypes.MsgWithdrawDelegatorReward{
		DelegatorAddress: n.world.address(who).String(), ValidatorAddress: n.world.validator(from)}
}

func (n *network) commission(of string) *distrtypes.MsgWithdrawValidatorCommission {
	return &distrtypes.MsgWithdrawValidatorCommission{ValidatorAddress: n.world.validator(of)}
}

func (n *network) withdrawTo(who, to string) *distrtypes.MsgSetWithdrawAddress {
	return &distrtypes.MsgSetWithdrawAddress{DelegatorAddress: n.world.address(who).String(),
		WithdrawAddress: n.world.address(to).String()}
}

func (n *network) fund(who string, coins ...sdk.Coin) *distrtypes.MsgFundCommunityPool {
	return &distrtypes.MsgFundCommunityPool{
		Depositor: n.world.address(who).String(), Amount: coins}
}

func (n *network) deposit(
	who, to string, coins ...sdk.Coin,
) *distrtypes.MsgDepositValidatorRewardsPool {
	return &distrtypes.MsgDepositValidatorRewardsPool{Depositor: n.world.address(who).String(),
		ValidatorAddress: n.world.validator(to), Amount: coins}
}

func (n *network) unjail(who string) *slashingtypes.MsgUnjail {
	return &slashingtypes.MsgUnjail{ValidatorAddr: n.world.validator(who)}
}

// same leaves a part of a description as it is.
const same = stakingtypes.DoNotModifyDesc

func (n *network) edit(
	who string, change func(*stakingtypes.MsgEditValidator),
) *stakingtypes.MsgEditValidator {
	made := &stakingtypes.MsgEditValidator{
		Description:      stakingtypes.NewDescription(same, same, same, same, same),
		ValidatorAddress: n.world.validator(who)}
	change(made)
	return made
}

func (n *network) editRate(who, rate string) *stakingtypes.MsgEditValidator {
	return n.edit(who, func(m *stakingtypes.MsgEditValidator) {
		value := dec(rate)
		m.CommissionRate = &value
	})
}

func (n *network) editMinimum(who string, tokens int64) *stakingtypes.MsgEditValidator {
	return n.edit(who, func(m *stakingtypes.MsgEditValidator) {
		value := math.NewInt(tokens)
		m.MinSelfDelegation = &value
	})
}

// changedMessage returns the message after a change.
func changedMessage[T proto.Message](msg T, change func(T)) T {
	change(msg)
	return msg
}

// play makes the recorded blocks.
func (n *network) play() {
	n.step()
	n.step()
	n.playAll()
	n.playErrors()
	n.playDowntime()
	n.playNewValidators()
	n.playEntries()
	n.playDoubleSign()
	n.playRemoval()
	n.playCommission()
	n.playMinimum()
	n.jump(50*time.Hour + 123456789*time.Nanosecond)
	n.run(10)
	n.playLast()
	for n.height%20 != 0 {
		n.run(1)
	}
}

// playAll sends a message of each type in both sign modes.
func (n *network) playAll() {
	for _, each := range []struct {
		who  string
		mode func(*draft)
	}{
		{"grace", nil}, {"heidi", func(d *draft) { d.mode = amino }},
	} {
		who := each.who
		n.add("delegate", who, each.mode, n.delegate(who, "alice", coin("stake", 7_000_000_001)))
		n.add("delegate to another", who, each.mode,
			n.delegate(who, "bob", coin("stake", 3_333_333_333)))
		n.step()
		n.add("undelegate", who, each.mode, n.undelegate(who, "alice", coin("stake", 1_000_000)))
		n.add("redelegate", who, each.mode,
			n.redelegate(who, "alice", "carol", coin("stake", 2_000_000_000)))
		n.step()
		n.add("cancel an unbonding delegation", who, each.mode,
			n.cancel(who, "alice", coin("stake", 400_000), n.height))
		n.add("withdraw rewards", who, each.mode, n.withdraw(who, "bob"))
		n.add("set the withdraw address", who, each.mode, n.withdrawTo(who, "stranger of "+who))
		n.add("fund the community pool", who, each.mode,
			n.fund(who, coin("stake", 12_345), coin("token", 67)))
		n.add("deposit rewards", who, each.mode,
			n.deposit(who, "alice", coin("stake", 1_000_003), coin("token", 5_000_009)))
		n.add("send", who, each.mode, n.from(who, "frank", coin("token", 5)))
		n.step()
		n.add("withdraw rewards to another address", who, each.mode, n.withdraw(who, "alice"))
		operator := map[string]string{"grace": "alice", "heidi": "bob"}[who]
		n.add("withdraw commission", operator, each.mode, n.commission(operator))
		n.add("edit a validator", operator, each.mode,
			n.edit(operator, func(m *stakingtypes.MsgEditValidator) {
				m.Description.Website = "https://example.org/" + operator
				m.Description.Details = "<&> ü"
			}))
		n.step()
	}
	n.add("several messages", "grace", nil,
		n.delegate("grace", "dave", coin("stake", 1_000_000_000)),
		n.undelegate("grace", "bob", coin("stake", 1_000_000)), n.withdraw("grace", "alice"))
	n.add("several messages, the last one fails", "heidi", nil,
		n.delegate("heidi", "dave", coin("stake", 1_000_000_000)), n.withdraw("heidi", "dave"),
		n.commission("heidi"))
	n.step()
	n.add("several signers", "grace", func(d *draft) {
		d.signers = n.signers("grace", "heidi")
	}, n.withdraw("grace", "dave"), n.delegate("heidi", "dave", coin("stake", 2_000_000_000)))
	n.step()
	n.run(10)
}

// playErrors sends messages that the handlers refuse whatever the state is.
func (n *network) playErrors() {
	n.try(n.delegationErrors()...)
	n.try(n.creationErrors()...)
	n.try(n.editErrors()...)
	n.try(n.rewardErrors()...)
	n.try(n.authorityErrors()...)
	n.add("not enough gas for the message", "grace", func(d *draft) { d.gas = 90_000 },
		n.delegate("grace", "alice", coin("stake", 1)))
	n.add("not enough gas for the hooks", "heidi", func(d *draft) { d.gas = 120_000 },
		n.undelegate("heidi", "bob", coin("stake", 1)))
	n.addRefused("not enough gas for the signature", "alice", func(d *draft) { d.gas = 1000 },
		n.delegate("alice", "alice", coin("stake", 1)))
	n.addRefused("fee of an unknown coin", "bob", func(d *draft) { d.fee = of(coin("none", 1)) },
		n.delegate("bob", "alice", coin("stake", 1)))
	n.addRefused("fee above the balance", "carol", func(d *draft) {
		d.fee = of(coin("token", 2_000_000_000_000))
	}, n.withdraw("carol", "carol"))
	n.addRefused("invalid delegator", "dave", func(d *draft) { d.gas = 200_000 },
		changedMessage(n.delegate("dave", "alice", coin("stake", 1)),
			func(m *stakingtypes.MsgDelegate) { m.DelegatorAddress = "nobody" }))
	n.addRefused("create a validator with a key that is a message", "grace", nil,
		changedMessage(n.world.create("grace", 1), func(m *stakingtypes.MsgCreateValidator) {
			m.Pubkey = must(codectypes.NewAnyWithValue(n.unjail("alice")))
		}))
	n.addRefused("signed by another", "erin", nil, n.delegate("frank", "bob", coin("stake", 1)))
	n.step()
	n.run(3)
}

func (n *network) delegationErrors() []attempt {
	one := coin("stake", 1)
	var found []attempt
	for _, each := range []struct {
		name string
		coin sdk.Coin
	}{
		{"of another coin", coin("token", 1)},
		{"of an invalid coin", coin("!", 1)},
		{"of no coin", coin("", 1)},
		{"of zero", coin("stake", 0)},
		{"of a negative amount", coin("stake", -1)},
		{"of too much", coin("stake", 2_000_000_000_000)},
		{"of an amount above 64 bits", sdk.Coin{Denom: "stake",
			Amount: math.NewIntWithDecimal(1, 60)}},
	} {
		found = append(found,
			attempt{"delegate " + each.name, "grace", n.delegate("grace", "alice", each.coin)},
			attempt{"undelegate " + each.name, "heidi", n.undelegate("heidi", "alice", each.coin)},
			attempt{"redelegate " + each.name, "grace",
				n.redelegate("grace", "alice", "dave", each.coin)},
			attempt{"cancel " + each.name, "grace", n.cancel("grace", "alice", each.coin, 4)})
	}
	invalid, other := "nobody", n.world.address("alice").String()
	return append(found, []attempt{
		{"delegate to no validator", "grace", n.delegate("grace", "grace", one)},
		{"delegate to an invalid address", "grace", changedMessage(n.delegate("grace", "alice", one),
			func(m *stakingtypes.MsgDelegate) { m.ValidatorAddress = invalid })},
		{"delegate to an account's address", "grace",
			changedMessage(n.delegate("grace", "alice", one),
				func(m *stakingtypes.MsgDelegate) { m.ValidatorAddress = other })},
		{"delegate to an empty address", "grace", changedMessage(n.delegate("grace", "alice", one),
			func(m *stakingtypes.MsgDelegate) { m.ValidatorAddress = "" })},
		{"undelegate from no validator", "grace", n.undelegate("grace", "grace", one)},
		{"undelegate without delegation", "ivan", n.undelegate("ivan", "carol", one)},
		{"undelegate from an invalid address", "grace",
			changedMessage(n.undelegate("grace", "alice", one),
				func(m *stakingtypes.MsgUndelegate) { m.ValidatorAddress = invalid })},
		{"redelegate to the same validator", "grace", n.redelegate("grace", "alice", "alice", one)},
		{"redelegate to no validator", "grace", n.redelegate("grace", "alice", "grace", one)},
		{"redelegate from no validator", "grace", n.redelegate("grace", "grace", "alice", one)},
		{"redelegate without delegation", "ivan", n.redelegate("ivan", "alice", "bob", one)},
		{"redelegate transitively", "grace", n.redelegate("grace", "carol", "bob", one)},
		{"redelegate from an invalid address", "grace",
			changedMessage(n.redelegate("grace", "alice", "bob", one),
				func(m *stakingtypes.MsgBeginRedelegate) { m.ValidatorSrcAddress = invalid })},
		{"redelegate to an invalid address", "grace",
			changedMessage(n.redelegate("grace", "alice", "bob", one),
				func(m *stakingtypes.MsgBeginRedelegate) { m.ValidatorDstAddress = invalid })},
		{"cancel at height 0", "grace", n.cancel("grace", "alice", one, 0)},
		{"cancel at a negative height", "grace", n.cancel("grace", "alice", one, -1)},
		{"cancel at a height without entry", "grace", n.cancel("grace", "alice", one, 1)},
		{"cancel of no validator", "grace", n.cancel("grace", "grace", one, 4)},
		{"cancel without unbonding delegation", "grace", n.cancel("grace", "carol", one, 4)},
		{"cancel of an invalid address", "grace", changedMessage(n.cancel("grace", "alice", one, 4),
			func(m *stakingtypes.MsgCancelUnbondingDelegation) { m.ValidatorAddress = invalid })},
		{"cancel more than the entry", "grace",
			n.cancel("grace", "alice", coin("stake", 600_001), 4)},
	}...)
}

func (n *network) creationErrors() []attempt {
	var found []attempt
	long := strings.Repeat("x", 3001)
	for _, each := range []struct {
		name   string
		change func(*stakingtypes.MsgCreateValidator)
	}{
		{"with a key in use", func(m *stakingtypes.MsgCreateValidator) {
			m.Pubkey = packed(publicKey(consensusKey("alice")))
		}},
		{"with a key of another type", func(m *stakingtypes.MsgCreateValidator) {
			m.Pubkey = packed(n.world.keys["alice"].PubKey())
		}},
		{"with a short key", func(m *stakingtypes.MsgCreateValidator) {
			m.Pubkey = packed(&ed25519.PubKey{Key: make([]byte, 31)})
		}},
		{"without key", func(m *stakingtypes.MsgCreateValidator) { m.Pubkey = nil }},
		{"of another coin", func(m *stakingtypes.MsgCreateValidator) {
			m.Value = coin("token", 1_000_000)
		}},
		{"of zero", func(m *stakingtypes.MsgCreateValidator) { m.Value = coin("stake", 0) }},
		{"of a negative amount", func(m *stakingtypes.MsgCreateValidator) {
			m.Value = coin("stake", -1)
		}},
		{"of too much", func(m *stakingtypes.MsgCreateValidator) {
			m.Value = coin("stake", 2_000_000_000_000)
		}},
		{"with a minimum of zero", func(m *stakingtypes.MsgCreateValidator) {
			m.MinSelfDelegation = math.ZeroInt()
		}},
		{"with a negative minimum", func(m *stakingtypes.MsgCreateValidator) {
			m.MinSelfDelegation = math.NewInt(-1)
		}},
		{"below its minimum", func(m *stakingtypes.MsgCreateValidator) {
			m.MinSelfDelegation = m.Value.Amount.AddRaw(1)
		}},
		{"without description", func(m *stakingtypes.MsgCreateValidator) {
			m.Description = stakingtypes.Description{}
		}},
		{"with a long moniker", func(m *stakingtypes.MsgCreateValidator) {
			m.Description.Moniker = long[:71]
		}},
		{"with a long identity", func(m *stakingtypes.MsgCreateValidator) {
			m.Description.Identity = long
		}},
		{"with a long website", func(m *stakingtypes.MsgCreateValidator) {
			m.Description.Website = long[:141]
		}},
		{"with a long contact", func(m *stakingtypes.MsgCreateValidator) {
			m.Description.SecurityContact = long[:141]
		}},
		{"with long details", func(m *stakingtypes.MsgCreateValidator) {
			m.Description.Details = long[:281]
		}},
	} {
		message := n.world.create("frank", 1_000_000)
		each.change(message)
		found = append(found, attempt{"create a validator " + each.name, "frank", message})
	}
	for _, each := range []struct{ name, rate, maxRate, step string }{
		{"a negative rate", "-0.1", "1", "0"},
		{"a negative maximum", "0", "-0.1", "0"},
		{"a negative change", "0.1", "0.2", "-0.1"},
		{"a maximum above 1", "0.1", "1.1", "0"},
		{"a rate above the maximum", "0.3", "0.2", "0"},
		{"a change above the maximum", "0.1", "0.2", "0.3"},
	} {
		message := n.world.create("frank", 1_000_000)
		message.Commission = stakingtypes.NewCommissionRates(
			dec(each.rate), dec(each.maxRate), dec(each.step))
		found = append(found, attempt{"create a validator with " + each.name, "frank", message})
	}
	return append(found, attempt{
		"create a second validator", "alice", changedMessage(n.world.create("alice", 1),
			func(m *stakingtypes.MsgCreateValidator) {
				m.Pubkey = packed(publicKey(consensusKey("frank")))
			})})
}

func packed(key cryptotypes.PubKey) *codectypes.Any { return must(codectypes.NewAnyWithValue(key)) }

func (n *network) editErrors() []attempt {
	long := strings.Repeat("x", 281)
	return []attempt{
		{"edit no validator", "grace", n.editMinimum("grace", 2)},
		{"edit an empty description", "alice", n.edit("alice",
			func(m *stakingtypes.MsgEditValidator) { m.Description = stakingtypes.Description{} })},
		{"edit a long moniker", "alice", n.edit("alice",
			func(m *stakingtypes.MsgEditValidator) { m.Description.Moniker = long[:71] })},
		{"edit long details", "alice", n.edit("alice",
			func(m *stakingtypes.MsgEditValidator) { m.Description.Details = long })},
		{"edit a rate above 1", "alice", n.editRate("alice", "1.000000000000000001")},
		{"edit a negative rate", "alice", n.editRate("alice", "-0.000000000000000001")},
		{"edit the rate within a day", "alice", n.editRate("alice", "0.105")},
		{"edit a minimum of zero", "alice", n.editMinimum("alice", 0)},
		{"edit a lower minimum", "alice", n.editMinimum("alice", 1)},
		{"edit a minimum above the tokens", "alice", n.editMinimum("alice", 900_000_000_000)},
		{"edit nothing", "alice", n.edit("alice", func(*stakingtypes.MsgEditValidator) {})},
		{"edit an empty moniker", "alice", n.edit("alice",
			func(m *stakingtypes.MsgEditValidator) { m.Description.Moniker = "" })},
	}
}

func (n *network) rewardErrors() []attempt {
	invalid := "nobody"
	return []attempt{
		{"withdraw from no validator", "grace", n.withdraw("grace", "grace")},
		{"withdraw without delegation", "ivan", n.withdraw("ivan", "carol")},
		{"withdraw from an invalid address", "grace", changedMessage(n.withdraw("grace", "alice"),
			func(m *distrtypes.MsgWithdrawDelegatorReward) { m.ValidatorAddress = invalid })},
		{"withdraw commission of no validator", "grace", n.commission("grace")},
		{"withdraw no commission", "carol", n.commission("carol")},
		{"withdraw to a module", "grace", n.withdrawTo("grace", "fee_collector")},
		{"withdraw to the pool of rewards", "grace", n.withdrawTo("grace", "distribution")},
		{"withdraw to an invalid address", "grace", changedMessage(n.withdrawTo("grace", "bob"),
			func(m *distrtypes.MsgSetWithdrawAddress) { m.WithdrawAddress = invalid })},
		{"withdraw to an empty address", "grace", changedMessage(n.withdrawTo("grace", "bob"),
			func(m *distrtypes.MsgSetWithdrawAddress) { m.WithdrawAddress = "" })},
		{"fund with nothing", "grace", n.fund("grace")},
		{"fund with zero", "grace", n.fund("grace", coin("stake", 0))},
		{"fund with a negative amount", "grace", n.fund("grace", coin("stake", -1))},
		{"fund with too much", "grace", n.fund("grace", coin("stake", 2_000_000_000_000))},
		{"fund with coins out of order", "grace",
			n.fund("grace", coin("token", 1), coin("stake", 1))},
		{"fund with an unknown coin", "grace", n.fund("grace", coin("none", 1))},
		{"deposit rewards for no validator", "heidi",
			n.deposit("heidi", "grace", coin("stake", 1))},
		{"deposit too much", "heidi", n.deposit("heidi", "alice", coin("stake", 2_000_000_000_000))},
		{"deposit nothing", "heidi", n.deposit("heidi", "alice")},
		{"deposit zero", "heidi", n.deposit("heidi", "alice", coin("stake", 0))},
		{"deposit a negative amount", "heidi", n.deposit("heidi", "alice", coin("stake", -1))},
		{"deposit for an invalid address", "heidi",
			changedMessage(n.deposit("heidi", "alice", coin("stake", 1)),
				func(m *distrtypes.MsgDepositValidatorRewardsPool) { m.ValidatorAddress = invalid })},
		{"unjail no validator", "grace", n.unjail("grace")},
		{"unjail a validator that is not jailed", "alice", n.unjail("alice")},
	}
}

// authorityErrors are the messages that only the governance module may send, and evidence, for
// which no handler is registered.
func (n *network) authorityErrors() []attempt {
	grace := n.world.address("grace").String()
	return []attempt{
		{"update the params of staking", "grace", &stakingtypes.MsgUpdateParams{
			Authority: grace, Params: stakingtypes.DefaultParams()}},
		{"update the params of distribution", "grace", &distrtypes.MsgUpdateParams{
			Authority: grace, Params: distrtypes.DefaultParams()}},
		{"update the params of mint", "grace", &minttypes.MsgUpdateParams{
			Authority: grace, Params: minttypes.DefaultParams()}},
		{"update the params of slashing", "grace", &slashingtypes.MsgUpdateParams{
			Authority: grace, Params: slashingtypes.DefaultParams()}},
		{"spend the community pool", "grace", &distrtypes.MsgCommunityPoolSpend{
			Authority: grace, Recipient: grace, Amount: of(coin("stake", 1))}},
		{"submit evidence", "grace", must(evidencetypes.NewMsgSubmitEvidence(
			n.world.address("grace"), &evidencetypes.Equivocation{
				Height: 1, Time: n.at, Power: 1,
				ConsensusAddress: sdk.ConsAddress(
					consensusKey("alice").PubKey().Address()).String()}))},
		{"submit no evidence", "grace", &evidencetypes.MsgSubmitEvidence{Submitter: grace}},
	}
}

func (n *network) miss(name string, absent bool) {
	n.absent[string(consensusKey(name).PubKey().Address())] = absent
}

// playDowntime jails dave for downtime, and unjails him.
func (n *network) playDowntime() {
	n.add("undelegate before the downtime", "heidi", nil,
		n.undelegate("heidi", "dave", coin("stake", 500_000_000)))
	n.run(1)
	undelegated := n.height
	n.nils[string(consensusKey("alice").PubKey().Address())] = true
	n.run(2)
	clear(n.nils)
	n.miss("dave", true)
	n.run(5)
	n.miss("dave", false)
	n.run(3)
	n.miss("dave", true)
	for !n.jailed("dave") {
		n.run(1)
	}
	n.add("unjail too early", "dave", nil, n.unjail("dave"))
	n.add("cancel at a jailed validator", "heidi", nil,
		n.cancel("heidi", "dave", coin("stake", 1), undelegated))
	n.add("delegate to a jailed validator", "heidi", nil,
		n.delegate("heidi", "dave", coin("stake", 1_234_567)))
	n.add("redelegate from a jailed validator", "grace", nil,
		n.redelegate("grace", "dave", "bob", coin("stake", 100_000_007)))
	n.run(4)
	n.miss("dave", false)
	n.jump(11 * time.Minute)
	n.add("unjail", "dave", nil, n.unjail("dave"))
	n.run(4)
}

func (n *network) validatorState(name string) *stakingtypes.Validator {
	var found stakingtypes.QueryValidatorResponse
	if n.asked(stakingQuery+"Validator", &stakingtypes.QueryValidatorRequest{
		ValidatorAddr: n.world.validator(name)}, &found) != nil {
		return nil
	}
	return &found.Validator
}

func (n *network) jailed(name string) bool { return n.validatorState(name).Jailed }

// playNewValidators has a validator push out the smallest one, and one that is too small.
func (n *network) playNewValidators() {
	n.add("create a validator", "erin", nil, n.world.create("erin", 70_000_000_000))
	n.add("create a small validator, amino", "frank", func(d *draft) { d.mode = amino },
		n.world.create("frank", 1_999_999))
	n.run(3)
	n.playTie()
	n.add("delegate to a small validator", "grace", nil,
		n.delegate("grace", "frank", coin("stake", 41_000_000_000)))
	n.run(3)
	n.add("undelegate from a validator that was small", "grace", nil,
		n.undelegate("grace", "frank", coin("stake", 40_000_000_000)))
	n.run(3)
	n.add("two validators in one block", "bob", nil,
		n.delegate("bob", "dave", coin("stake", 30_000_000_000)),
		n.delegate("bob", "frank", coin("stake", 39_000_000_000)))
	n.run(3)
	n.jump(3 * time.Minute)
	n.run(10)
}

// playTie creates a validator with as many tokens as the last one that is bonded, and then gives
// it one unit of power more.
func (n *network) playTie() {
	found := must(n.staking.GetBondedValidatorsByPower(n.NewContextLegacy(true, cmtproto.Header{})))
	last := found[len(found)-1].Tokens.Int64()
	n.add("create a validator without commission", "grace", nil,
		changedMessage(n.world.create("grace", last), func(m *stakingtypes.MsgCreateValidator) {
			m.Commission = stakingtypes.CommissionRates{}
			m.DelegatorAddress = n.world.address("grace").String() //nolint:staticcheck
		}))
	n.step()
	n.step()
	n.add("delegate to the validator of a tie", "grace", nil,
		n.delegate("grace", "grace", coin("stake", 1_000_000)))
	n.step()
	n.step()
	n.add("undelegate from the validator of a tie", "grace", nil,
		n.undelegate("grace", "grace", coin("stake", 2_000_000)))
	n.step()
}

// playEntries fills an unbonding delegation and a redelegation.
func (n *network) playEntries() {
	var heights []int64
	for at := range int64(8) {
		n.add(fmt.Sprintf("undelegate, entry %d", at+1), "heidi", nil,
			n.undelegate("heidi", "alice", coin("stake", 1_000_000+at)))
		n.add(fmt.Sprintf("redelegate, entry %d", at+1), "erin", nil,
			n.redelegate("erin", "erin", "alice", coin("stake", 1_000_000+at)))
		n.run(1)
		heights = append(heights, n.height)
	}
	n.add("two entries of one block", "grace", nil,
		n.undelegate("grace", "bob", coin("stake", 1_000_001)),
		n.undelegate("grace", "bob", coin("stake", 2_000_002)))
	n.add("cancel a whole entry", "heidi", nil,
		n.cancel("heidi", "alice", coin("stake", 1_000_003), heights[3]))
	n.add("cancel a part of an entry", "heidi", nil,
		n.cancel("heidi", "alice", coin("stake", 999), heights[2]))
	n.run(1)
	n.jump(2 * time.Hour)
	n.run(4)
}

// playDoubleSign tombstones erin, after some have left her validator since the double sign.
func (n *network) playDoubleSign() {
	n.add("delegate before the double sign", "heidi", nil,
		n.world.create("heidi", 200_000_000_000),
		n.delegate("heidi", "erin", coin("stake", 3_000_000_000)),
		n.delegate("heidi", "erin", coin("stake", 7)))
	n.add("delegate before the double sign", "grace", nil,
		n.delegate("grace", "erin", coin("stake", 2_000_000_000)))
	n.add("withdraw to grace", "heidi", nil, n.withdrawTo("heidi", "grace"))
	n.run(2)
	n.add("undelegate before the double sign", "heidi", nil,
		n.undelegate("heidi", "erin", coin("stake", 100_000_000)))
	n.run(2)
	height, at, power := n.height, n.at, n.power("erin")
	n.add("undelegate after the double sign", "heidi", nil,
		n.undelegate("heidi", "erin", coin("stake", 200_000_000)))
	n.add("redelegate after the double sign", "heidi", nil,
		n.redelegate("heidi", "erin", "bob", coin("stake", 500_000_000)),
		n.redelegate("heidi", "erin", "dave", coin("stake", 300_000_000)))
	n.run(1)
	undelegated := n.height
	n.add("undelegate what was redelegated", "heidi", nil,
		n.undelegate("heidi", "dave", coin("stake", 299_000_000)))
	n.run(2)
	n.prove(abci.MisbehaviorType_DUPLICATE_VOTE, "erin", power, height, at)
	n.run(1)
	n.prove(abci.MisbehaviorType_LIGHT_CLIENT_ATTACK, "erin", power, height+1, at.Add(blockTime))
	n.prove(abci.MisbehaviorType_LIGHT_CLIENT_ATTACK, "heidi", n.power("heidi"), n.height, n.at)
	n.add("unjail a tombstoned validator", "erin", nil, n.unjail("erin"))
	n.add("undelegate from a tombstoned validator", "heidi", nil,
		n.undelegate("heidi", "erin", coin("stake", 1_000_003)))
	n.add("cancel at a tombstoned validator", "heidi", nil,
		n.cancel("heidi", "erin", coin("stake", 1), undelegated))
	n.add("delegate to a tombstoned validator", "heidi", nil,
		n.delegate("heidi", "erin", coin("stake", 11)))
	n.run(3)
	n.jump(unbondingTime - 30*time.Minute)
	n.run(5)
	n.prove(abci.MisbehaviorType_DUPLICATE_VOTE, "alice", 50_000, 1, n.world.genesis.GenesisTime)
	n.add("undelegate to cancel too late", "alice", nil,
		n.undelegate("alice", "alice", coin("stake", 1_000_000)))
	n.run(1)
	n.add("cancel too late", "alice", nil, n.cancel("alice", "alice", coin("stake", 1), n.height))
	n.jump(unbondingTime + time.Nanosecond)
	n.run(5)
}

// power returns the voting power of a validator in the last commit.
func (n *network) power(name string) int64 {
	_, found := n.now.GetByAddress(consensusKey(name).PubKey().Address())
	return found.VotingPower
}

// playRemoval jails carol for downtime, lets her validator unbond, and removes it.
func (n *network) playRemoval() {
	n.miss("carol", true)
	for !n.jailed("carol") {
		n.run(1)
	}
	n.run(3)
	n.prove(abci.MisbehaviorType_LIGHT_CLIENT_ATTACK, "carol", 30_000, n.height-10,
		n.at.Add(-10*blockTime))
	n.run(1)
	n.miss("carol", false)
	n.jump(unbondingTime + time.Minute)
	n.run(2)
	n.add("unjail a tombstoned validator that is unbonded", "carol", nil, n.unjail("carol"))
	n.prove(abci.MisbehaviorType_DUPLICATE_VOTE, "carol", 30_000, n.height, n.at)
	n.run(1)
	n.leave("carol")
	n.leave("heidi")
	n.add("create a validator with a tombstoned key", "heidi", nil,
		n.world.create("heidi", 120_000_000_000))
	n.add("create a validator that has dust", "carol", nil, n.world.create("carol", 1_000_000))
	n.run(5)
}

// leave makes a block in which all delegators undelegate all from the validator, without other
// transactions.
func (n *network) leave(name string) {
	var found stakingtypes.QueryValidatorDelegationsResponse
	if err := n.asked(stakingQuery+"ValidatorDelegations",
		&stakingtypes.QueryValidatorDelegationsRequest{ValidatorAddr: n.world.validator(name)},
		&found); err != nil {
		panic(err)
	}
	for _, each := range found.DelegationResponses {
		who := n.nameOf(each.Delegation.DelegatorAddress)
		n.add("undelegate all", who, nil, n.undelegate(who, name, each.Balance))
	}
	n.step()
}

func (n *network) nameOf(address string) string {
	for name, each := range n.recorded.Accounts {
		if each.Address == address {
			return name
		}
	}
	panic(address)
}

// playCommission changes commissions after more than a day.
func (n *network) playCommission() {
	n.jump(25 * time.Hour)
	n.try(
		attempt{"edit a rate by too much", "alice", n.editRate("alice", "0.12")},
		attempt{"edit a rate above the maximum", "alice", n.editRate("alice", "0.21")},
		attempt{"lower a rate that may not change", "dave", n.editRate("dave", "0.99")},
		attempt{"edit a rate", "alice", n.editRate("alice", "0.109999999999999999")},
		attempt{"lower a rate by more than a step", "bob", n.editRate("bob", "0.005")},
		attempt{"edit a rate again", "alice", n.editRate("alice", "0.1")},
	)
	n.add("withdraw to nobody", "alice", nil, n.withdrawTo("alice", "stranger"))
	n.add("withdraw commission to another", "alice", nil, n.commission("alice"))
	n.add("withdraw commission and rewards", "dave", nil, n.commission("dave"),
		n.withdraw("dave", "dave"))
	n.run(8)
}

// playMinimum has bob undelegate below the minimum that he sets, and return; and frank leave.
func (n *network) playMinimum() {
	n.add("edit a minimum", "bob", nil, n.editMinimum("bob", 30_000_000_000))
	n.run(1)
	n.add("undelegate below the minimum", "bob", nil,
		n.undelegate("bob", "bob", n.delegated("bob", 20_000_000_000)))
	n.run(2)
	n.add("unjail below the minimum", "bob", nil, n.unjail("bob"))
	n.run(2)
	n.add("delegate and unjail, amino", "bob", func(d *draft) { d.mode = amino },
		n.delegate("bob", "bob", coin("stake", 25_000_000_000)), n.unjail("bob"))
	n.run(3)
	n.add("delegate so that the validator is bonded", "heidi", nil,
		n.delegate("heidi", "frank", coin("stake", 100_000_000_000)))
	n.step()
	n.leave("frank")
	n.add("unjail without self-delegation", "frank", nil, n.unjail("frank"))
	n.add("deposit for a validator without tokens", "heidi", nil,
		n.deposit("heidi", "frank", coin("stake", 1_000_001)))
	n.add("withdraw commission of a validator without tokens", "frank", nil,
		n.commission("frank"))
	n.step()
	n.add("delegate to a validator without tokens", "heidi", nil,
		n.delegate("heidi", "frank", coin("stake", 999_999)))
	n.step()
	n.leave("frank")
	n.wait = unbondingTime
	n.step()
	n.add("create a validator again", "frank", nil, n.world.create("frank", 90_000_000_000))
	n.run(5)
}

// playImported makes blocks after the import of an exported state.
func (n *network) playImported() {
	n.step()
	n.run(2)
	n.miss("bob", true)
	for !n.jailed("bob") {
		n.run(1)
	}
	n.prove(abci.MisbehaviorType_DUPLICATE_VOTE, "heidi", n.power("heidi"), n.height, n.at)
	n.add("withdraw rewards", "grace", nil, n.withdraw("grace", "alice"))
	n.add("delegate", "heidi", nil, n.delegate("heidi", "erin", coin("stake", 1_000_000_000)))
	n.run(3)
	n.jump(unbondingTime + time.Hour)
	n.run(8)
	n.dump()
}

// playLast leaves unbonding delegations and redelegations for the queries.
func (n *network) playLast() {
	for at := range int64(3) {
		n.add("delegate, undelegate and redelegate", "heidi", nil,
			n.delegate("heidi", "heidi", coin("stake", 9_000_000_000)),
			n.undelegate("heidi", "heidi", coin("stake", 100_000_000+at)),
			n.undelegate("heidi", "bob", coin("stake", 200_000_000+at)),
			n.redelegate("heidi", "heidi", "bob", coin("stake", 300_000_000+at)),
			n.redelegate("heidi", "heidi", "alice", coin("stake", 400_000_000+at)))
		n.run(1)
	}
	n.add("leave a validator that may be unjailed", "frank", nil,
		n.editMinimum("frank", 50_000_000_000),
		n.undelegate("frank", "frank", n.delegated("frank", 40_000_000_000)),
		n.delegate("frank", "frank", coin("stake", 30_000_000_000)))
	n.run(1)
}

// delegated returns what an operator has delegated to the own validator, without the rest.
func (n *network) delegated(name string, rest int64) sdk.Coin {
	var found stakingtypes.QueryDelegationResponse
	if err := n.asked(stakingQuery+"Delegation", &stakingtypes.QueryDelegationRequest{
		DelegatorAddr: n.world.address(name).String(), ValidatorAddr: n.world.validator(name),
	}, &found); err != nil {
		panic(err)
	}
	return found.DelegationResponse.Balance.SubAmount(math.NewInt(rest))
}

// addRandom queues a transaction of random messages. Those of heidi are all scripted, and ivan
// never delegates.
func (n *network) addRandom() {
	who := n.choose(slices.DeleteFunc(ordered(n.world.words),
		func(name string) bool { return name == "heidi" || name == "ivan" }))
	name, msg := n.randomMessage(who)
	names, msgs := []string{name}, []proto.Message{msg}
	for n.random.Intn(6) == 0 {
		name, msg := n.randomMessage(who)
		names, msgs = append(names, name), append(msgs, msg)
	}
	n.add("random "+strings.Join(names, ", "), who, func(d *draft) {
		if n.random.Intn(4) == 0 {
			d.mode = amino
		}
		switch n.random.Intn(6) {
		case 0:
			d.noFee = true
		case 1:
			d.fee = of(coin("token", 1+n.random.Int63n(100_000)))
		case 2:
			d.fee = of(coin("stake", 1+n.random.Int63n(100_000)), coin("token", 7))
		}
	}, msgs...)
}

func (n *network) choose(names []string) string { return names[n.random.Intn(len(names))] }

// amount returns a random amount, of which a tenth are small.
func (n *network) amount(limit int64) sdk.Coin {
	if n.random.Intn(10) == 0 {
		limit = min(limit, 1000)
	}
	return coin("stake", 1+n.random.Int63n(max(limit, 1)))
}

func (n *network) randomMessage(who string) (string, proto.Message) {
	to := n.choose(operators)
	switch draw := n.random.Intn(100); {
	case draw < 8:
		return "send", n.from(who, n.choose(ordered(n.world.words)),
			coin(n.choose([]string{"stake", "token"}), 1+n.random.Int63n(1_000_000)))
	case draw < 32:
		return "delegate", n.delegate(who, to, n.amount(5_000_000_000))
	case draw < 50:
		from, balance := n.randomDelegation(who)
		return "undelegate", n.undelegate(who, from, balance)
	case draw < 64:
		from, balance := n.randomDelegation(who)
		return "redelegate", n.redelegate(who, from, to, balance)
	case draw < 71:
		return "cancel", n.randomCancel(who)
	case draw < 84:
		from, _ := n.randomDelegation(who)
		return "withdraw", n.withdraw(who, from)
	case draw < 88:
		return "commission", n.commission(who)
	case draw < 91:
		return "withdraw address", n.withdrawTo(who,
			n.choose(append(ordered(n.world.words), "stranger", "fee_collector")))
	case draw < 94:
		return "fund", n.fund(who, n.amount(1_000_000), coin("token", 3))
	case draw < 97:
		return "deposit", n.deposit(who, to, n.amount(100_000_000), coin("token", 1_000_001))
	case draw < 98:
		return "unjail", n.unjail(who)
	default:
		return "edit", n.edit(who, func(m *stakingtypes.MsgEditValidator) {
			m.Description.Details = fmt.Sprintf("edited at %d", n.height)
		})
	}
}

// randomDelegation returns the validator of a delegation, and a part of it or all.
func (n *network) randomDelegation(who string) (string, sdk.Coin) {
	var found stakingtypes.QueryDelegatorDelegationsResponse
	if n.asked(stakingQuery+"DelegatorDelegations", &stakingtypes.QueryDelegatorDelegationsRequest{
		DelegatorAddr: n.world.address(who).String()}, &found) != nil ||
		len(found.DelegationResponses) == 0 {
		return n.choose(operators), n.amount(1000)
	}
	each := found.DelegationResponses[n.random.Intn(len(found.DelegationResponses))]
	from := n.nameOf(sdk.AccAddress(must(sdk.ValAddressFromBech32(
		each.Delegation.ValidatorAddress))).String())
	amount := each.Balance.Amount.Int64()
	switch {
	case from == who:
		return from, n.amount(amount / 30)
	case n.random.Intn(3) == 0:
		return from, each.Balance
	default:
		return from, n.amount(amount)
	}
}

func (n *network) randomCancel(who string) proto.Message {
	var found stakingtypes.QueryDelegatorUnbondingDelegationsResponse
	if n.asked(stakingQuery+"DelegatorUnbondingDelegations",
		&stakingtypes.QueryDelegatorUnbondingDelegationsRequest{
			DelegatorAddr: n.world.address(who).String()}, &found) != nil ||
		len(found.UnbondingResponses) == 0 {
		return n.cancel(who, n.choose(operators), n.amount(1000), 1)
	}
	each := found.UnbondingResponses[n.random.Intn(len(found.UnbondingResponses))]
	entry := each.Entries[n.random.Intn(len(each.Entries))]
	made := n.cancel(who, who, coin("stake", entry.Balance.Int64()), entry.CreationHeight)
	made.ValidatorAddress = each.ValidatorAddress
	if n.random.Intn(2) == 0 {
		made.Amount = n.amount(entry.Balance.Int64())
	}
	return made
}
