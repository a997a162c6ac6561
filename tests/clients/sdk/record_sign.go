package main

import (
	"context"

	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	"github.com/cosmos/cosmos-sdk/crypto/keys/multisig"
	cryptotypes "github.com/cosmos/cosmos-sdk/crypto/types"
	multisigtypes "github.com/cosmos/cosmos-sdk/crypto/types/multisig"
	sdk "github.com/cosmos/cosmos-sdk/types"
	txtypes "github.com/cosmos/cosmos-sdk/types/tx"
	"github.com/cosmos/cosmos-sdk/types/tx/signing"
	authsigning "github.com/cosmos/cosmos-sdk/x/auth/signing"
	authtx "github.com/cosmos/cosmos-sdk/x/auth/tx"
	"github.com/cosmos/gogoproto/proto"
)

const (
	direct = signing.SignMode_SIGN_MODE_DIRECT
	amino  = signing.SignMode_SIGN_MODE_LEGACY_AMINO_JSON
)

// draft is a transaction before it is signed. The functions change what the protobuf says; the
// tails are written behind the parts, as fields that nobody knows.
type draft struct {
	msgs     []proto.Message
	memo     string
	timeout  uint64
	fee      sdk.Coins
	noFee    bool
	gas      uint64
	payer    string
	granter  string
	mode     signing.SignMode
	signers  []signer
	chainID  string
	body     func(*txtypes.TxBody)
	auth     func(*txtypes.AuthInfo)
	raw      func(*txtypes.TxRaw)
	bodyTail []byte
	authTail []byte
	rawTail  []byte
}

// signer is an owner by name, with which its account differs from the chain's.
type signer struct {
	name     string
	number   int64
	sequence int64
	key      cryptotypes.PubKey
	with     []string
	mode     signing.SignMode
}

func by(names ...string) []signer {
	var found []signer
	for _, each := range names {
		found = append(found, signer{name: each})
	}
	return found
}

func (l *ledger) sign(given draft) []byte {
	if given.mode == 0 {
		given.mode = direct
	}
	if given.chainID == "" {
		given.chainID = l.world.genesis.ChainID
	}
	body := &txtypes.TxBody{Memo: given.memo, TimeoutHeight: given.timeout}
	for _, each := range given.msgs {
		body.Messages = append(body.Messages, must(codectypes.NewAnyWithValue(each)))
	}
	if given.body != nil {
		given.body(body)
	}
	bodyBytes := append(must(proto.Marshal(body)), given.bodyTail...)

	if given.fee == nil && !given.noFee {
		given.fee = sdk.NewCoins(sdk.NewInt64Coin("stake", 2000))
	}
	auth := &txtypes.AuthInfo{Fee: &txtypes.Fee{
		Amount: given.fee, GasLimit: given.gas, Payer: given.payer, Granter: given.granter}}
	for at := range given.signers {
		each := &given.signers[at]
		if each.mode == 0 {
			each.mode = given.mode
		}
		_, sequence := l.account(l.world.address(each.name))
		auth.SignerInfos = append(auth.SignerInfos, &txtypes.SignerInfo{
			PublicKey: must(codectypes.NewAnyWithValue(l.world.pubKey(*each))),
			ModeInfo:  l.world.modeOf(*each),
			Sequence:  uint64(int64(sequence) + each.sequence),
		})
	}
	if given.auth != nil {
		given.auth(auth)
	}
	authBytes := append(must(proto.Marshal(auth)), given.authTail...)

	whole := &txtypes.TxRaw{BodyBytes: bodyBytes, AuthInfoBytes: authBytes}
	unsigned := must(proto.Marshal(whole))
	for _, each := range given.signers {
		whole.Signatures = append(whole.Signatures, l.signature(each, given.chainID, whole, unsigned))
	}
	if given.raw != nil {
		given.raw(whole)
	}
	return append(must(proto.Marshal(whole)), given.rawTail...)
}

func (w *world) pubKey(who signer) cryptotypes.PubKey {
	switch {
	case who.key != nil:
		return who.key
	case who.name == "multi":
		return w.multi
	default:
		return w.keys[who.name].PubKey()
	}
}

func (w *world) modeOf(who signer) *txtypes.ModeInfo {
	if len(who.with) == 0 {
		return &txtypes.ModeInfo{Sum: &txtypes.ModeInfo_Single_{
			Single: &txtypes.ModeInfo_Single{Mode: who.mode}}}
	}
	info, _ := authtx.SignatureDataToModeInfoAndSig(w.shared(who, func(cryptotypes.PrivKey) []byte {
		return nil
	}))
	return info
}

// shared is the signature of several keys; the signature of each is made by the function.
func (w *world) shared(
	who signer, sign func(cryptotypes.PrivKey) []byte,
) *signing.MultiSignatureData {
	keys := w.pubKey(who).(*multisig.LegacyAminoPubKey).GetPubKeys()
	data := multisigtypes.NewMultisig(len(keys))
	for _, name := range who.with {
		key := w.keys[name].(cryptotypes.PrivKey)
		single := &signing.SingleSignatureData{SignMode: who.mode, Signature: sign(key)}
		if err := multisigtypes.AddSignatureFromPubKey(data, single, key.PubKey(), keys); err != nil {
			panic(err)
		}
	}
	return data
}

func (l *ledger) signature(
	who signer, chainID string, whole *txtypes.TxRaw, unsigned []byte,
) []byte {
	address := l.world.address(who.name)
	number, sequence := l.account(address)
	number, sequence = uint64(int64(number)+who.number), uint64(int64(sequence)+who.sequence)
	var text []byte
	if who.mode == direct {
		text = must(proto.Marshal(&txtypes.SignDoc{
			BodyBytes: whole.BodyBytes, AuthInfoBytes: whole.AuthInfoBytes,
			ChainId: chainID, AccountNumber: number}))
	} else {
		decoded, err := l.txs.TxDecoder()(unsigned)
		if err == nil {
			text, err = authsigning.GetSignBytesAdapter(
				context.Background(), l.txs.SignModeHandler(), who.mode,
				authsigning.SignerData{
					Address: address.String(), ChainID: chainID, AccountNumber: number,
					Sequence: sequence, PubKey: l.world.pubKey(who)}, decoded)
		}
		if err != nil {
			text = []byte(err.Error())
		}
	}
	sign := func(key cryptotypes.PrivKey) []byte { return must(key.Sign(text)) }
	if len(who.with) == 0 {
		return sign(l.world.keys[who.name].(cryptotypes.PrivKey))
	}
	_, data := authtx.SignatureDataToModeInfoAndSig(l.world.shared(who, sign))
	return data
}
