package main

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"math/big"
	"time"

	sdkmath "cosmossdk.io/math"
	"cosmossdk.io/x/feegrant"
	abci "github.com/cometbft/cometbft/abci/types"
	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/query"
	txtypes "github.com/cosmos/cosmos-sdk/types/tx"
	"github.com/cosmos/cosmos-sdk/types/tx/signing"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	vesting "github.com/cosmos/cosmos-sdk/x/auth/vesting/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	"github.com/cosmos/gogoproto/proto"
)

// The recording's form is documented in tests/clients/record_vesting.py.

// created are the accounts that messages create; they have keys, but no words.
var created = []string{"continuous", "delayed", "permanent", "periodic",
	"continuous of bob", "delayed of bob", "permanent of bob", "periodic of bob",
	"past", "overflowing"}

func recordVesting(ctx context.Context, given options, out io.Writer) error {
	world, err := newModulesWorld(
		options{rewards: true, slashing: true, grants: true, vesting: true})
	if err != nil {
		return err
	}
	if err := world.lock(); err != nil {
		return err
	}
	made, err := newNetwork(world)
	if err != nil {
		return err
	}
	made.playVesting()
	made.recorded.Queries = made.askVesting()
	return made.print(ctx, given, out)
}

// lock makes vesting accounts of some accounts of the genesis: of dave, who creates a validator
// in it, of erin, frank, grace and heidi, and of ivan, who has less than what is locked.
func (w *world) lock() error {
	for _, name := range created {
		w.keys[name] = secp256k1.GenPrivKeyFromSecret([]byte(name))
	}
	var state map[string]json.RawMessage
	if err := json.Unmarshal(w.genesis.AppState, &state); err != nil {
		return err
	}
	empty, err := w.ledger("empty")
	if err != nil {
		return err
	}
	var auth authtypes.GenesisState
	empty.codec.MustUnmarshalJSON(state[authtypes.ModuleName], &auth)
	accounts, err := authtypes.UnpackAccounts(auth.Accounts)
	if err != nil {
		return err
	}
	start := w.genesis.GenesisTime.Unix()
	for at, each := range accounts {
		base := each.(*authtypes.BaseAccount)
		locked := func(end int64, coins ...sdk.Coin) *vesting.BaseVestingAccount {
			return must(vesting.NewBaseVestingAccount(base, of(coins...), end))
		}
		switch each.GetAddress().String() {
		case w.address("dave").String():
			accounts[at] = vesting.NewContinuousVestingAccountRaw(
				locked(start+30*3600, coin("stake", 15_000_000_000)), start)
		case w.address("erin").String():
			accounts[at] = vesting.NewDelayedVestingAccountRaw(locked(
				start+7200, coin("stake", 999_999_000_000), coin("token", 500_000_000_000)))
		case w.address("frank").String():
			accounts[at] = vesting.NewPeriodicVestingAccountRaw(
				locked(start+90+3*3600, coin("stake", 900_000_000_003), coin("token", 77)),
				start+20, vesting.Periods{
					{Length: 70, Amount: of(coin("stake", 300_000_000_000))},
					{Length: 0, Amount: of(coin("token", 7))},
					{Length: 3600, Amount: of(coin("stake", 300_000_000_001), coin("token", 70))},
					{Length: 7200, Amount: of(coin("stake", 300_000_000_002))}})
		case w.address("grace").String():
			accounts[at] = must(vesting.NewPermanentLockedAccount(base,
				of(coin("stake", 999_900_000_000), coin("token", 1_000_000_000_000))))
		case w.address("heidi").String():
			account := vesting.NewContinuousVestingAccountRaw(
				locked(start+86_399, coin("stake", 999_999_999_999), coin("token", 333_333_333_331)),
				start-1000)
			account.DelegatedFree = of(coin("stake", 1_000), coin("token", 5))
			account.DelegatedVesting = of(coin("stake", 2_000_003))
			accounts[at] = account
		case w.address("ivan").String():
			accounts[at] = vesting.NewDelayedVestingAccountRaw(
				locked(start+7*3600, coin("ibc", 1), coin("stake", 1_000_000_000_001)))
		}
	}
	state[authtypes.ModuleName] = empty.codec.MustMarshalJSON(
		authtypes.NewGenesisState(auth.Params, accounts))
	var bank banktypes.GenesisState
	empty.codec.MustUnmarshalJSON(state[banktypes.ModuleName], &bank)
	bank.SendEnabled = []banktypes.SendEnabled{{Denom: "frozen", Enabled: false}}
	state[banktypes.ModuleName] = empty.codec.MustMarshalJSON(&bank)
	w.genesis.AppState, err = json.Marshal(state)
	return err
}

func (n *network) createVesting(
	from, to string, end int64, delayed bool, coins ...sdk.Coin,
) *vesting.MsgCreateVestingAccount {
	return &vesting.MsgCreateVestingAccount{FromAddress: n.world.address(from).String(),
		ToAddress: n.world.address(to).String(), Amount: coins, EndTime: end, Delayed: delayed}
}

func (n *network) createPermanent(
	from, to string, coins ...sdk.Coin,
) *vesting.MsgCreatePermanentLockedAccount {
	return &vesting.MsgCreatePermanentLockedAccount{
		FromAddress: n.world.address(from).String(), ToAddress: n.world.address(to).String(),
		Amount: coins}
}

func (n *network) createPeriodic(
	from, to string, start int64, periods ...vesting.Period,
) *vesting.MsgCreatePeriodicVestingAccount {
	return &vesting.MsgCreatePeriodicVestingAccount{
		FromAddress: n.world.address(from).String(), ToAddress: n.world.address(to).String(),
		StartTime: start, VestingPeriods: periods}
}

func (n *network) playVesting() {
	n.step()
	n.step()
	n.playCreation()
	n.playCreationErrors()
	n.playSpending("at first")
	n.playLockedDelegations()
	for _, each := range []struct {
		name string
		wait time.Duration
	}{
		{"after a minute", time.Minute},
		{"after an hour", time.Hour},
		{"after two hours", time.Hour},
	} {
		n.wait = each.wait
		n.step()
		n.playSpending(each.name)
	}
	n.playSlashing()
	n.wait = 6 * time.Hour
	n.step()
	n.playSpending("after the undelegations")
	n.playUndelegations()
	n.wait = 30 * time.Hour
	n.step()
	n.playSpending("at last")
	for n.height%20 != 0 {
		n.step()
	}
}

func (n *network) playCreation() {
	end := n.at.Add(time.Hour).Unix()
	periods := []vesting.Period{
		{Length: 60, Amount: of(coin("stake", 400_000))},
		{Length: 3600, Amount: of(coin("stake", 500_001), coin("token", 9))}}
	for _, each := range []struct {
		who, suffix string
		mode        func(*draft)
	}{{"alice", "", nil}, {"bob", " of bob", useAmino}} {
		who, to := each.who, each.suffix
		n.add("create a continuous vesting account"+to, who, each.mode,
			n.createVesting(who, "continuous"+to, end, false, coin("stake", 1_000_003)))
		n.add("create a delayed vesting account"+to, who, each.mode, n.createVesting(
			who, "delayed"+to, end, true, coin("stake", 2_000_000), coin("token", 31)))
		n.step()
		n.add("create a permanent locked account"+to, who, each.mode, n.createPermanent(
			who, "permanent"+to, coin("stake", 3_000_000), coin("token", 5)))
		n.add("create a periodic vesting account"+to, who, each.mode,
			n.createPeriodic(who, "periodic"+to, n.at.Unix()+5, periods...))
		n.add("send free coins"+to, who, each.mode,
			n.from(who, "continuous"+to, coin("stake", 50_000)),
			n.from(who, "delayed"+to, coin("stake", 50_000), coin("token", 4)),
			n.from(who, "permanent"+to, coin("stake", 50_000)),
			n.from(who, "periodic"+to, coin("stake", 50_000), coin("token", 3)))
		n.step()
	}
	n.add("create an account that is vested", "carol", nil,
		n.createVesting("carol", "past", 1, false, coin("stake", 10_000)))
	n.add("create a periodic vesting account whose end overflows", "carol", nil,
		n.createPeriodic("carol", "overflowing", 10,
			vesting.Period{Length: math.MaxInt64, Amount: of(coin("stake", 10_000))},
			vesting.Period{Length: math.MaxInt64, Amount: of(coin("stake", 10_000))},
			vesting.Period{Length: n.at.Unix() + 3600, Amount: of(coin("token", 10_000))}))
	n.step()
	n.add("spend what was vested at once", "past", nil, n.from("past", "bob", coin("stake", 5000)))
	n.add("create an account from locked coins", "erin", nil,
		n.createPermanent("erin", "absent", coin("stake", 999_000_000_000)))
	n.add("create accounts in one transaction", "carol", nil,
		n.createPermanent("carol", "first stranger", coin("token", 1)),
		n.createVesting("carol", "second stranger", end, true, coin("token", 1)),
		n.createPermanent("carol", "first stranger", coin("token", 1)))
	n.step()
}

func (n *network) playCreationErrors() {
	end, one := n.at.Add(time.Hour).Unix(), coin("stake", 1)
	negative := sdk.Coin{Denom: "stake", Amount: sdkmath.NewInt(-1)}
	huge := sdk.Coin{Denom: "stake", Amount: sdkmath.NewIntFromBigInt(
		new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1)))}
	var attempts []attempt
	for _, each := range []struct {
		name  string
		coins []sdk.Coin
	}{
		{"no coins", nil},
		{"zero", []sdk.Coin{coin("stake", 0)}},
		{"a negative amount", []sdk.Coin{negative}},
		{"unsorted coins", []sdk.Coin{coin("token", 1), one}},
		{"a coin twice", []sdk.Coin{one, one}},
		{"an invalid coin", []sdk.Coin{coin("!", 1)}},
		{"a coin that can't be sent", []sdk.Coin{coin("frozen", 1), one}},
		{"too much", []sdk.Coin{coin("stake", 5_000_000_000_000)}},
	} {
		attempts = append(attempts,
			attempt{"create of " + each.name, "carol",
				n.createVesting("carol", "absent", end, false, each.coins...)},
			attempt{"create permanent of " + each.name, "carol",
				n.createPermanent("carol", "absent", each.coins...)},
			attempt{"create periods of " + each.name, "carol", n.createPeriodic("carol", "absent",
				5, vesting.Period{Length: 5, Amount: of(one)},
				vesting.Period{Length: 5, Amount: each.coins})})
	}
	for _, to := range []string{"mint", "alice", "permanent"} {
		attempts = append(attempts,
			attempt{"create at " + to, "carol", n.createVesting("carol", to, end, true, one)},
			attempt{"create permanent at " + to, "carol", n.createPermanent("carol", to, one)},
			attempt{"create periods at " + to, "carol", n.createPeriodic(
				"carol", to, 5, vesting.Period{Length: 5, Amount: of(one)})})
	}
	for _, to := range []string{"", "nobody", n.world.validator("alice")} {
		attempts = append(attempts,
			attempt{"create at the address " + to, "carol", changedMessage(
				n.createVesting("carol", "absent", end, true, one),
				func(m *vesting.MsgCreateVestingAccount) { m.ToAddress = to })},
			attempt{"create permanent at the address " + to, "carol", changedMessage(
				n.createPermanent("carol", "absent", one),
				func(m *vesting.MsgCreatePermanentLockedAccount) { m.ToAddress = to })},
			attempt{"create periods at the address " + to, "carol", changedMessage(
				n.createPeriodic("carol", "absent", 5),
				func(m *vesting.MsgCreatePeriodicVestingAccount) { m.ToAddress = to })})
	}
	for _, at := range []int64{0, -1} {
		attempts = append(attempts,
			attempt{"create with an invalid end", "carol",
				n.createVesting("carol", "absent", at, false, one)},
			attempt{"create periods with an invalid start", "carol", n.createPeriodic(
				"carol", "absent", at, vesting.Period{Length: 5, Amount: of(one)})},
			attempt{"create periods of an invalid length", "carol", n.createPeriodic(
				"carol", "absent", 5, vesting.Period{Length: at, Amount: of(one)})})
	}
	n.try(append(attempts, []attempt{
		{"create without periods", "carol", n.createPeriodic("carol", "absent", 5)},
		{"create periods that overflow", "carol", n.createPeriodic("carol", "absent", 5,
			vesting.Period{Length: math.MaxInt64, Amount: of(one)})},
		{"create periods whose coins overflow", "carol", n.createPeriodic("carol", "absent", 5,
			vesting.Period{Length: 1, Amount: of(huge)}, vesting.Period{Length: 1, Amount: of(huge)})},
		{"create periods whose coins overflow before one is invalid", "carol", n.createPeriodic(
			"carol", "absent", 5, vesting.Period{Length: 1, Amount: of(huge)},
			vesting.Period{Length: 1, Amount: of(huge)}, vesting.Period{Length: 0})},
		{"create an invalid period before coins overflow", "carol", n.createPeriodic(
			"carol", "absent", 5, vesting.Period{Length: 1, Amount: of(huge)},
			vesting.Period{Length: 0}, vesting.Period{Length: 1, Amount: of(huge)})},
	}...)...)
	n.add("create without periods, amino", "carol", useAmino,
		n.createPeriodic("carol", "absent", 5))
	n.add("create periods of no coins, amino", "carol", useAmino,
		n.createPeriodic("carol", "absent", 5, vesting.Period{Length: 5}))
	n.add("create of no coins, amino", "carol", useAmino,
		n.createVesting("carol", "absent", 0, false))
	n.add("send to nobody, amino", "carol", useAmino, banktypes.NewMsgMultiSend(
		banktypes.NewInput(n.world.address("carol"), of(one)), nil))
	n.add("not enough gas to create", "carol", func(d *draft) { d.gas = 70_000 },
		n.createPermanent("carol", "absent", one))
	n.addRefused("create, signed by another", "bob", nil,
		n.createPermanent("carol", "absent", one))
	n.addRefused("create from an invalid address", "bob", nil, changedMessage(
		n.createPermanent("bob", "absent", one),
		func(m *vesting.MsgCreatePermanentLockedAccount) { m.FromAddress = "nobody" }))
	n.step()
}

// spendable is what an account may spend at the latest block.
func (n *network) spendable(name, denom string) int64 {
	var found banktypes.QuerySpendableBalanceByDenomResponse
	if n.asked("/cosmos.bank.v1beta1.Query/SpendableBalanceByDenom",
		&banktypes.QuerySpendableBalanceByDenomRequest{
			Address: n.world.address(name).String(), Denom: denom}, &found) != nil {
		return 0
	}
	return found.Balance.Amount.Int64()
}

// playSpending sends less, as much and more than what can be spent.
func (n *network) playSpending(when string) {
	for _, who := range []string{"erin", "frank", "grace", "heidi", "continuous", "delayed",
		"permanent", "periodic", "overflowing"} {
		left := n.spendable(who, "stake")
		if left < 10_000 {
			n.addRefused("a fee of locked coins, "+when, who,
				func(d *draft) { d.fee = of(coin("stake", left+1_000_000)) },
				n.from(who, "alice", coin("stake", 1)))
			continue
		}
		n.add("send too much, "+when, who, func(d *draft) { d.fee = of(coin("stake", 1000)) },
			n.from(who, "alice", coin("stake", left+5_000_000_000)))
		n.add("send a part, "+when, who, func(d *draft) { d.fee = of(coin("stake", 1000)) },
			n.from(who, "alice", coin("stake", left/5)))
	}
	n.add("send one more than is free, "+when, "erin", nil, n.from(
		"erin", "alice", coin("token", n.spendable("erin", "token")+1)))
	n.add("send locked coins to two, "+when, "grace", nil, banktypes.NewMsgMultiSend(
		banktypes.NewInput(n.world.address("grace"), of(coin("token", 2))),
		[]banktypes.Output{banktypes.NewOutput(n.world.address("ivan"), of(coin("token", 1))),
			banktypes.NewOutput(n.world.address("bob"), of(coin("token", 1)))}))
	n.add("send more than is there, "+when, "ivan", func(d *draft) { d.fee = of(coin("token", 9)) },
		n.from("ivan", "alice", coin("stake", 1)))
	n.addRefused("pay with locked coins, "+when, "grace",
		func(d *draft) { d.fee = of(coin("token", 1)) },
		n.from("grace", "alice", coin("stake", 1)))
	n.step()
}

func (n *network) playLockedDelegations() {
	n.add("delegate locked coins", "erin", nil,
		n.delegate("erin", "alice", coin("stake", 600_000_000_000)))
	n.add("delegate locked and free coins", "frank", useAmino,
		n.delegate("frank", "bob", coin("stake", 700_000_000_000)))
	n.add("delegate coins that are locked forever", "grace", nil,
		n.delegate("grace", "alice", coin("stake", 999_900_000_000)))
	n.add("delegate coins that vest", "heidi", nil,
		n.delegate("heidi", "carol", coin("stake", 1_000_000_007)),
		n.delegate("heidi", "alice", coin("stake", 900_000_000_000)))
	n.add("delegate more than is there", "ivan",
		func(d *draft) { d.fee = of(coin("token", 9)) },
		n.delegate("ivan", "alice", coin("stake", 1_000_000_000_001)))
	n.step()
	n.add("delegate all but one", "ivan", func(d *draft) { d.fee = of(coin("token", 9)) },
		n.delegate("ivan", "alice", coin("stake", 999_999_999_999)))
	n.add("delegate of a created account", "permanent", nil,
		n.delegate("permanent", "bob", coin("stake", 3_000_000)))
	n.add("delegate of another created account", "periodic of bob", useAmino,
		n.delegate("periodic of bob", "bob", coin("stake", 700_000)))
	n.add("spend what is free now", "grace", nil,
		n.from("grace", "bob", coin("stake", n.spendable("grace", "stake")-32_000)))
	n.step()
	n.add("a validator of locked coins", "erin", nil, n.world.create("erin", 300_000_000_000))
	n.add("undelegate", "frank", nil, n.undelegate("frank", "bob", coin("stake", 100_000_000_000)))
	n.add("undelegate of a created account", "permanent", nil,
		n.undelegate("permanent", "bob", coin("stake", 1_000_000)))
	n.add("redelegate locked coins", "erin", nil,
		n.redelegate("erin", "alice", "bob", coin("stake", 50_000_000_000)))
	n.add("redelegate", "heidi", nil,
		n.redelegate("heidi", "carol", "bob", coin("stake", 500_000_000)))
	n.step()
	n.add("cancel", "frank", nil,
		n.cancel("frank", "bob", coin("stake", 30_000_000_000), n.height))
	n.add("withdraw", "erin", nil, n.withdraw("erin", "alice"))
	n.add("grant fees of a vesting account", "frank", nil,
		n.grantFees("frank", "past", &feegrant.BasicAllowance{}))
	n.add("grant fees of locked coins", "delayed", nil,
		n.grantFees("delayed", "past", &feegrant.BasicAllowance{}))
	n.step()
	n.add("pay by a vesting account", "past", granted(n.world.address("frank")),
		n.from("past", "bob", coin("stake", 1)))
	n.addRefused("pay by locked coins", "past",
		granted(n.world.address("delayed"), coin("stake", 1_000_000)),
		n.from("past", "bob", coin("stake", 1)))
	n.add("fund the community pool with locked coins", "erin", nil,
		n.fund("erin", coin("token", 900_000_000_000)))
	n.step()
}

func (n *network) playSlashing() {
	height, at, power := n.height, n.at, n.power("alice")
	n.add("undelegate before the slash", "erin", nil,
		n.undelegate("erin", "alice", coin("stake", 100_000_000_000)))
	n.add("undelegate before the slash", "heidi", nil,
		n.undelegate("heidi", "alice", coin("stake", 800_000_000_000)))
	n.step()
	n.prove(abci.MisbehaviorType_DUPLICATE_VOTE, "alice", power, height, at)
	n.step()
	n.miss("dave", true)
	for !n.jailed("dave") {
		n.step()
	}
	n.miss("dave", false)
	n.add("undelegate after the slash", "grace", nil,
		n.undelegate("grace", "alice", coin("stake", 900_000_000_000)))
	n.add("undelegate from a jailed validator", "dave", nil,
		n.undelegate("dave", "dave", coin("stake", 12_000_000_000)))
	n.step()
}

func (n *network) playUndelegations() {
	n.add("undelegate the rest", "erin", nil,
		n.undelegate("erin", "alice", coin("stake", 400_000_000_000)))
	n.add("undelegate the rest", "ivan", func(d *draft) { d.fee = of(coin("token", 9)) },
		n.undelegate("ivan", "alice", coin("stake", 900_000_000_000)))
	n.add("undelegate the rest", "heidi", nil,
		n.undelegate("heidi", "bob", coin("stake", 500_000_000)))
	n.add("delegate again", "grace", nil, n.delegate("grace", "bob", coin("stake", 1_000_000)))
	n.add("delegate again", "frank", nil, n.delegate("frank", "bob", coin("stake", 70_000_000_000)))
	n.step()
}

func (n *network) askVesting() []queryRecord {
	a := &modulesAsker{&asker{ledger: n.ledger}, n, n.world.address("absent").String()}
	names := append(ordered(n.world.words), created...)
	heights := []int64{1, 8, n.height / 2, 0}
	for _, name := range append(names, "mint", "first stranger", "second stranger") {
		of := n.world.address(name).String()
		for _, height := range heights {
			a.at(height, &banktypes.QuerySpendableBalancesRequest{Address: of})
			a.at(height, &banktypes.QuerySpendableBalanceByDenomRequest{Address: of, Denom: "stake"})
		}
		a.at(20, &authtypes.QueryAccountRequest{Address: of})
		a.now(&authtypes.QueryAccountRequest{Address: of},
			&authtypes.QueryAccountInfoRequest{Address: of},
			&banktypes.QuerySpendableBalanceByDenomRequest{Address: of, Denom: "token"},
			&banktypes.QuerySpendableBalanceByDenomRequest{Address: of, Denom: "nocoin"},
			&banktypes.QueryAllBalancesRequest{Address: of})
	}
	for _, of := range []string{a.absent, "nobody", ""} {
		a.now(&banktypes.QuerySpendableBalancesRequest{Address: of},
			&banktypes.QuerySpendableBalanceByDenomRequest{Address: of, Denom: "stake"},
			&banktypes.QuerySpendableBalanceByDenomRequest{Address: of, Denom: "!"})
	}
	grace := n.world.address("grace").String()
	a.at(1, &authtypes.QueryAccountsRequest{})
	a.pages("/cosmos.auth.v1beta1.Query/Accounts", &authtypes.QueryAccountsResponse{},
		func(page *query.PageRequest) message {
			return &authtypes.QueryAccountsRequest{Pagination: page}
		})
	a.pages("/cosmos.bank.v1beta1.Query/SpendableBalances",
		&banktypes.QuerySpendableBalancesResponse{},
		func(page *query.PageRequest) message {
			return &banktypes.QuerySpendableBalancesRequest{Address: grace, Pagination: page}
		})
	for _, each := range []attempt{
		{"a creation", "bob", n.createPermanent("bob", "absent", coin("stake", 1))},
		{"a creation that exists", "bob", n.createPermanent("bob", "alice", coin("stake", 1))},
		{"a send of locked coins", "grace", n.from("grace", "bob", coin("token", 1))},
		{"a delegation of locked coins", "grace", n.delegate("grace", "bob", coin("stake", 5))},
	} {
		raw := a.sign(draft{msgs: []proto.Message{each.msg}, noFee: true, signers: by(each.who),
			auth: func(auth *txtypes.AuthInfo) {
				auth.SignerInfos[0].ModeInfo = mode(signing.SignMode_SIGN_MODE_UNSPECIFIED)
			},
			raw: func(raw *txtypes.TxRaw) { raw.Signatures[0] = []byte{} }})
		a.raw("simulate "+each.name, txService+"Simulate",
			must(proto.Marshal(&txtypes.SimulateRequest{TxBytes: raw})), 0, false)
	}
	return a.found
}
