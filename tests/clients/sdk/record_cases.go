package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cosmossdk.io/math"
	codectypes "github.com/cosmos/cosmos-sdk/codec/types"
	"github.com/cosmos/cosmos-sdk/crypto/keys/ed25519"
	"github.com/cosmos/cosmos-sdk/crypto/keys/multisig"
	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	cryptotypes "github.com/cosmos/cosmos-sdk/crypto/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	txtypes "github.com/cosmos/cosmos-sdk/types/tx"
	"github.com/cosmos/cosmos-sdk/types/tx/signing"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	stakingtypes "github.com/cosmos/cosmos-sdk/x/staking/types"
	"github.com/cosmos/gogoproto/proto"
	"google.golang.org/protobuf/encoding/protowire"
)

// scenario is a chain of its own; what ask gives is asked after its last block.
type scenario struct {
	name string
	run  func(*ledger)
	ask  func(*ledger) []queryRecord
}

// one is a chain whose second block has one transaction.
func one(name string, make func(*ledger) draft) scenario {
	return scenario{name: name, run: func(l *ledger) {
		l.block(sent{name, l.sign(make(l))})
	}}
}

// changed is one whose bytes are changed after it is signed.
func changed(name string, change func([]byte) []byte) scenario {
	return scenario{name: name, run: func(l *ledger) {
		l.block(sent{name, change(l.sign(l.send(nil)))})
	}}
}

// usual is a send from bob to carol, and what differs in it.
func usual(name string, change func(*draft)) scenario {
	return one(name, func(l *ledger) draft { return l.send(change) })
}

// paying is a usual one of other coins.
func paying(name string, coins ...sdk.Coin) scenario {
	return one(name, func(l *ledger) draft {
		return l.send(func(d *draft) { d.msgs[0].(*banktypes.MsgSend).Amount = coins })
	})
}

// fee is a usual one that pays another fee.
func fee(name string, coins ...sdk.Coin) scenario {
	return usual(name, func(d *draft) { d.fee, d.noFee = coins, len(coins) == 0 })
}

func (l *ledger) send(change func(*draft)) draft {
	made := draft{
		msgs:    []proto.Message{l.from("bob", "carol", coin("token", 7))},
		gas:     200_000,
		signers: by("bob"),
	}
	if change != nil {
		change(&made)
	}
	return made
}

func (l *ledger) from(sender, recipient string, coins ...sdk.Coin) *banktypes.MsgSend {
	return &banktypes.MsgSend{
		FromAddress: l.world.address(sender).String(),
		ToAddress:   l.world.address(recipient).String(),
		Amount:      coins,
	}
}

func coin(denom string, amount int64) sdk.Coin {
	return sdk.Coin{Denom: denom, Amount: math.NewInt(amount)}
}

func (l *ledger) multi(inputs, outputs map[string]sdk.Coins) *banktypes.MsgMultiSend {
	var made banktypes.MsgMultiSend
	for _, name := range ordered(inputs) {
		made.Inputs = append(made.Inputs,
			banktypes.Input{Address: l.world.address(name).String(), Coins: inputs[name]})
	}
	for _, name := range ordered(outputs) {
		made.Outputs = append(made.Outputs,
			banktypes.Output{Address: l.world.address(name).String(), Coins: outputs[name]})
	}
	return &made
}

func ordered[T any](named map[string]T) []string {
	return slices.Sorted(maps.Keys(named))
}

func of(coins ...sdk.Coin) sdk.Coins { return coins }

// unknown is a field that no message has, and that must be understood; the second one need not.
var (
	unknown  = protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1)
	optional = protowire.AppendVarint(protowire.AppendTag(nil, 1100, protowire.VarintType), 1)
)

func scenarios() []scenario {
	return slices.Concat(
		valid(), encodings(), signatures(), limits(), fees(), messages(), several(), shared(), funded(),
		[]scenario{{name: "queries", run: history, ask: queries}},
	)
}

func valid() []scenario {
	return []scenario{
		usual("send", nil),
		usual("send, no fee", func(d *draft) { d.noFee = true }),
		usual("send, amino", func(d *draft) { d.mode = amino }),
		one("send to a new account", func(l *ledger) draft {
			return l.send(func(d *draft) { d.msgs[0] = l.from("bob", "frank", coin("stake", 5)) })
		}),
		one("send to a new account, amino", func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs[0], d.mode = l.from("bob", "frank", coin("stake", 5)), amino
			})
		}),
		one("send to oneself", func(l *ledger) draft {
			return l.send(func(d *draft) { d.msgs[0] = l.from("bob", "bob", coin("stake", 5)) })
		}),
		one("send all of a coin", func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs[0] = l.from("bob", "carol", coin("token", 1_000_000_000))
			})
		}),
		one("send of the owner whose key is known", func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs[0], d.signers = l.from("carol", "bob", coin("token", 1)), by("carol")
			})
		}),
		one("send of the owner without stake, no fee", func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs[0], d.signers = l.from("dave", "bob", coin("token", 1)), by("dave")
				d.noFee = true
			})
		}),
		paying("several coins", coin("stake", 3), coin("token", 4)),
		paying("a coin of a long name",
			coin("ibc/27394FB092D2ECCD56123C74F36E4C1F926001CEADA9CA97EA622B25F41E5EB2", 7)),
		one("several messages", func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs = append(d.msgs, l.from("bob", "frank", coin("stake", 1)),
					l.from("bob", "alice", coin("stake", 1), coin("token", 2)))
			})
		}),
		one("several signers", func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs = append(d.msgs, l.from("alice", "bob", coin("stake", 1)))
				d.signers = by("bob", "alice")
			})
		}),
		one("several signers, amino", func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs = append(d.msgs, l.from("alice", "bob", coin("stake", 1)))
				d.signers, d.mode = by("bob", "alice"), amino
			})
		}),
		one("several signers of two modes", func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs = append(d.msgs, l.from("alice", "bob", coin("stake", 1)))
				d.signers = []signer{{name: "bob", mode: direct}, {name: "alice", mode: amino}}
			})
		}),
		one("multisend", func(l *ledger) draft { return l.multisend(direct) }),
		one("multisend, amino", func(l *ledger) draft { return l.multisend(amino) }),
		one("multisend twice to one owner", func(l *ledger) draft {
			return l.send(func(d *draft) {
				made := l.multi(map[string]sdk.Coins{"bob": of(coin("token", 3))},
					map[string]sdk.Coins{"carol": of(coin("token", 2))})
				made.Outputs = append(made.Outputs, banktypes.NewOutput(
					l.world.address("carol"), of(coin("token", 1))))
				d.msgs[0] = made
			})
		}),
		usual("fee in two coins", func(d *draft) {
			d.fee = of(coin("stake", 10), coin("token", 20))
		}),
		one("fee payer", func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.payer, d.signers = l.world.address("alice").String(), by("bob", "alice")
			})
		}),
		one("fee payer who is the sender", func(l *ledger) draft {
			return l.send(func(d *draft) { d.payer = l.world.address("bob").String() })
		}),
		one("fee payer, amino", func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.payer, d.signers = l.world.address("alice").String(), by("bob", "alice")
				d.mode = amino
			})
		}),
		usual("memo", func(d *draft) { d.memo = "<b>&amp; \"quoted\" \\ äöü €𝄞 \u2028\n\t" }),
		usual("memo, amino", func(d *draft) {
			d.memo, d.mode = "<b>&amp; \"quoted\" \\ äöü €𝄞 \u2028\n\t", amino
		}),
		usual("memo of 256 bytes", func(d *draft) { d.memo = strings.Repeat("m", 256) }),
		usual("timeout height not reached", func(d *draft) { d.timeout = 10 }),
		usual("timeout height of this block", func(d *draft) { d.timeout = 2 }),
		usual("timeout height, amino", func(d *draft) { d.timeout, d.mode = 10, amino }),
		usual("unknown field that may be ignored", func(d *draft) { d.bodyTail = optional }),
		usual("option that may be ignored", func(d *draft) {
			d.body = func(body *txtypes.TxBody) {
				body.NonCriticalExtensionOptions = []*codectypes.Any{
					must(codectypes.NewAnyWithValue(&banktypes.MsgSendResponse{}))}
			}
		}),
		usual("timeout timestamp not reached", func(d *draft) {
			d.body = func(body *txtypes.TxBody) {
				body.TimeoutTimestamp = ptr(time.Date(2026, 1, 2, 3, 10, 0, 0, time.UTC))
			}
		}),
		usual("tip", func(d *draft) {
			d.auth = func(auth *txtypes.AuthInfo) {
				auth.Tip = &txtypes.Tip{Amount: of(coin("stake", 1)), Tipper: "x"} //nolint:staticcheck
			}
		}),
	}
}

func ptr[T any](of T) *T { return &of }

func (l *ledger) multisend(mode signing.SignMode) draft {
	return l.send(func(d *draft) {
		d.mode = mode
		d.msgs[0] = l.multi(
			map[string]sdk.Coins{"bob": of(coin("stake", 5), coin("token", 3))},
			map[string]sdk.Coins{
				"carol": of(coin("stake", 5), coin("token", 1)),
				"frank": of(coin("token", 2)),
			})
	})
}

func encodings() []scenario {
	return []scenario{
		changed("empty", func([]byte) []byte { return []byte{} }),
		changed("garbage", func([]byte) []byte { return []byte("garbage") }),
		changed("zeros", func([]byte) []byte { return make([]byte, 10) }),
		changed("text", func([]byte) []byte { return []byte("name=value") }),
		changed("truncated", func(raw []byte) []byte { return raw[:len(raw)-9] }),
		changed("cut in the body", func(raw []byte) []byte { return raw[:40] }),
		changed("one byte too many", func(raw []byte) []byte { return append(raw, 0) }),
		changed("a body in a longer form", func(raw []byte) []byte {
			return slices.Concat(raw[:1], []byte{raw[1], raw[2] | 0x80, 0}, raw[3:])
		}),
		changed("signatures first", func(raw []byte) []byte {
			var whole txtypes.TxRaw
			if err := proto.Unmarshal(raw, &whole); err != nil {
				panic(err)
			}
			last := must(proto.Marshal(&txtypes.TxRaw{Signatures: whole.Signatures}))
			whole.Signatures = nil
			return append(last, must(proto.Marshal(&whole))...)
		}),
		changed("a body twice", func(raw []byte) []byte {
			var whole txtypes.TxRaw
			if err := proto.Unmarshal(raw, &whole); err != nil {
				panic(err)
			}
			first := must(proto.Marshal(&txtypes.TxRaw{BodyBytes: whole.BodyBytes}))
			return append(first, raw...)
		}),
		usual("unknown field in the transaction", func(d *draft) { d.rawTail = unknown }),
		usual("unknown field in the body", func(d *draft) { d.bodyTail = unknown }),
		usual("unknown field in auth info", func(d *draft) { d.authTail = unknown }),
		usual("optional unknown field in the transaction", func(d *draft) { d.rawTail = optional }),
		usual("optional unknown field in auth info", func(d *draft) { d.authTail = optional }),
		usual("optional unknown field, amino", func(d *draft) { d.bodyTail, d.mode = optional, amino }),
		usual("unknown field in the message", func(d *draft) {
			d.body = func(body *txtypes.TxBody) {
				body.Messages[0].Value = append(body.Messages[0].Value, unknown...)
			}
		}),
		usual("optional unknown field in the message", func(d *draft) {
			d.body = func(body *txtypes.TxBody) {
				body.Messages[0].Value = append(body.Messages[0].Value, optional...)
			}
		}),
		usual("message that is no protobuf", func(d *draft) {
			d.body = func(body *txtypes.TxBody) { body.Messages[0].Value = []byte{0xff, 0xff} }
		}),
		usual("message with text that is not UTF-8", func(d *draft) {
			d.body = func(body *txtypes.TxBody) { body.Messages[0].Value = []byte{10, 2, 0xff, 0xfe} }
		}),
		usual("empty message", func(d *draft) {
			d.body = func(body *txtypes.TxBody) { body.Messages[0].Value = nil }
		}),
		usual("memo that is not UTF-8", func(d *draft) { d.bodyTail = []byte{18, 2, 0xff, 0xfe} }),
		usual("extension option", func(d *draft) {
			d.body = func(body *txtypes.TxBody) {
				body.ExtensionOptions = []*codectypes.Any{
					must(codectypes.NewAnyWithValue(&banktypes.MsgSendResponse{}))}
			}
		}),
		usual("extension option of an unknown type", func(d *draft) {
			d.body = func(body *txtypes.TxBody) {
				body.ExtensionOptions = []*codectypes.Any{{TypeUrl: "/none.of.Ours"}}
			}
		}),
		usual("optional extension option of an unknown type", func(d *draft) {
			d.body = func(body *txtypes.TxBody) {
				body.NonCriticalExtensionOptions = []*codectypes.Any{{TypeUrl: "/none.of.Ours"}}
			}
		}),
		usual("option that may be ignored, amino", func(d *draft) {
			d.mode = amino
			d.body = func(body *txtypes.TxBody) {
				body.NonCriticalExtensionOptions = []*codectypes.Any{
					must(codectypes.NewAnyWithValue(&banktypes.MsgSendResponse{}))}
			}
		}),
		usual("no messages", func(d *draft) { d.msgs = nil }),
		usual("message of an unknown type", func(d *draft) {
			d.body = func(body *txtypes.TxBody) { body.Messages[0].TypeUrl = "/none.of.Ours" }
		}),
		usual("message without a type", func(d *draft) {
			d.body = func(body *txtypes.TxBody) { body.Messages[0].TypeUrl = "" }
		}),
		usual("message type without slash", func(d *draft) {
			d.body = func(body *txtypes.TxBody) {
				body.Messages[0].TypeUrl = "cosmos.bank.v1beta1.MsgSend"
			}
		}),
		usual("message type with a host", func(d *draft) {
			d.body = func(body *txtypes.TxBody) {
				body.Messages[0].TypeUrl = "type.googleapis.com/cosmos.bank.v1beta1.MsgSend"
			}
		}),
		usual("message that is a response", func(d *draft) {
			d.msgs[0] = &banktypes.MsgSendResponse{}
		}),
		usual("message that is an account", func(d *draft) {
			d.msgs[0] = &banktypes.Supply{}
		}),
		usual("no fee field", func(d *draft) {
			d.auth = func(auth *txtypes.AuthInfo) { auth.Fee = nil }
		}),
		usual("no auth info", func(d *draft) {
			d.raw = func(raw *txtypes.TxRaw) { raw.AuthInfoBytes = nil }
		}),
		usual("no body", func(d *draft) {
			d.raw = func(raw *txtypes.TxRaw) { raw.BodyBytes = nil }
		}),
	}
}

func signatures() []scenario {
	bytesOf := func(raw *txtypes.TxRaw) *[]byte { return &raw.Signatures[0] }
	return []scenario{
		usual("no signatures", func(d *draft) {
			d.raw = func(raw *txtypes.TxRaw) { raw.Signatures = nil }
		}),
		usual("no signers", func(d *draft) { d.signers = nil }),
		usual("empty signature", func(d *draft) {
			d.raw = func(raw *txtypes.TxRaw) { *bytesOf(raw) = []byte{} }
		}),
		usual("short signature", func(d *draft) {
			d.raw = func(raw *txtypes.TxRaw) { *bytesOf(raw) = (*bytesOf(raw))[:63] }
		}),
		usual("long signature", func(d *draft) {
			d.raw = func(raw *txtypes.TxRaw) { *bytesOf(raw) = append(*bytesOf(raw), 0) }
		}),
		usual("wrong signature", func(d *draft) {
			d.raw = func(raw *txtypes.TxRaw) { (*bytesOf(raw))[5] ^= 1 }
		}),
		usual("wrong signature, amino", func(d *draft) {
			d.mode = amino
			d.raw = func(raw *txtypes.TxRaw) { (*bytesOf(raw))[5] ^= 1 }
		}),
		usual("signature with the high S", func(d *draft) {
			d.raw = func(raw *txtypes.TxRaw) { highS(*bytesOf(raw)) }
		}),
		usual("signature of zeros", func(d *draft) {
			d.raw = func(raw *txtypes.TxRaw) { *bytesOf(raw) = make([]byte, 64) }
		}),
		usual("more signatures than signers", func(d *draft) { d.signers = by("bob", "alice") }),
		usual("one signature twice", func(d *draft) {
			d.raw = func(raw *txtypes.TxRaw) {
				raw.Signatures = append(raw.Signatures, raw.Signatures[0])
			}
		}),
		usual("more signer infos than signatures", func(d *draft) {
			d.auth = func(auth *txtypes.AuthInfo) {
				auth.SignerInfos = append(auth.SignerInfos, auth.SignerInfos[0])
			}
		}),
		one("fewer signatures than signers", func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs = append(d.msgs, l.from("alice", "bob", coin("stake", 1)))
			})
		}),
		one("signers in the wrong order", func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs = append(d.msgs, l.from("alice", "bob", coin("stake", 1)))
				d.signers = by("alice", "bob")
			})
		}),
		usual("wrong chain id", func(d *draft) { d.chainID = "other-1" }),
		usual("wrong chain id, amino", func(d *draft) { d.chainID, d.mode = "other-1", amino }),
		usual("wrong account number", func(d *draft) { d.signers[0].number = 1 }),
		usual("wrong account number, amino", func(d *draft) {
			d.signers[0].number, d.mode = 1, amino
		}),
		usual("sequence too high", func(d *draft) { d.signers[0].sequence = 1 }),
		usual("sequence too high, amino", func(d *draft) {
			d.signers[0].sequence, d.mode = 1, amino
		}),
		one("sequence too low", func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs[0] = l.from("carol", "bob", coin("token", 1))
				d.signers = []signer{{name: "carol", sequence: -1}}
			})
		}),
		one("unknown signer", func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs[0], d.signers = l.from("frank", "bob", coin("token", 1)), by("frank")
			})
		}),
		one("unknown signer, no fee", func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs[0], d.signers = l.from("frank", "bob", coin("token", 1)), by("frank")
				d.noFee = true
			})
		}),
		one("key of another", func(l *ledger) draft {
			return l.send(func(d *draft) { d.signers[0].key = l.world.keys["alice"].PubKey() })
		}),
		one("signed by another, key of another", func(l *ledger) draft {
			return l.send(func(d *draft) { d.signers = by("alice") })
		}),
		one("key of another, the signer's known", func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs[0] = l.from("carol", "bob", coin("token", 1))
				d.signers = []signer{{name: "carol", key: l.world.keys["alice"].PubKey()}}
			})
		}),
		one("no key, the signer's known", func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs[0], d.signers = l.from("carol", "bob", coin("token", 1)), by("carol")
				d.auth = func(auth *txtypes.AuthInfo) { auth.SignerInfos[0].PublicKey = nil }
			})
		}),
		usual("no key, the signer's unknown", func(d *draft) {
			d.auth = func(auth *txtypes.AuthInfo) { auth.SignerInfos[0].PublicKey = nil }
		}),
		usual("key that is no protobuf", func(d *draft) {
			d.auth = func(auth *txtypes.AuthInfo) {
				auth.SignerInfos[0].PublicKey.Value = []byte{0xff, 0xff}
			}
		}),
		usual("key of 32 bytes", func(d *draft) {
			d.auth = func(auth *txtypes.AuthInfo) { resized(auth, 32) }
		}),
		usual("key of 34 bytes", func(d *draft) {
			d.auth = func(auth *txtypes.AuthInfo) { resized(auth, 34) }
		}),
		usual("empty key", func(d *draft) {
			d.auth = func(auth *txtypes.AuthInfo) { resized(auth, 0) }
		}),
		usual("key that is no point", func(d *draft) {
			d.signers[0].key = &secp256k1.PubKey{Key: bytes.Repeat([]byte{5}, 33)}
		}),
		usual("key of an unknown type", func(d *draft) {
			d.auth = func(auth *txtypes.AuthInfo) {
				auth.SignerInfos[0].PublicKey.TypeUrl = "/none.of.Ours"
			}
		}),
		usual("key that is a message", func(d *draft) {
			d.auth = func(auth *txtypes.AuthInfo) {
				auth.SignerInfos[0].PublicKey = must(codectypes.NewAnyWithValue(&banktypes.MsgSend{}))
			}
		}),
		modes("no sign mode", nil),
		modes("sign mode 0", &txtypes.ModeInfo{Sum: &txtypes.ModeInfo_Single_{
			Single: &txtypes.ModeInfo_Single{}}}),
		modes("sign mode textual", mode(signing.SignMode_SIGN_MODE_TEXTUAL)),
		modes("sign mode direct aux", mode(signing.SignMode_SIGN_MODE_DIRECT_AUX)),
		modes("sign mode EIP-191", mode(signing.SignMode_SIGN_MODE_EIP_191)),
		modes("sign mode 77", mode(77)),
		modes("sign mode of several keys", &txtypes.ModeInfo{Sum: &txtypes.ModeInfo_Multi_{
			Multi: &txtypes.ModeInfo_Multi{}}}),
	}
}

func mode(of signing.SignMode) *txtypes.ModeInfo {
	return &txtypes.ModeInfo{Sum: &txtypes.ModeInfo_Single_{
		Single: &txtypes.ModeInfo_Single{Mode: of}}}
}

func modes(name string, info *txtypes.ModeInfo) scenario {
	return usual(name, func(d *draft) {
		d.auth = func(auth *txtypes.AuthInfo) { auth.SignerInfos[0].ModeInfo = info }
	})
}

func resized(auth *txtypes.AuthInfo, size int) {
	var key secp256k1.PubKey
	if err := proto.Unmarshal(auth.SignerInfos[0].PublicKey.Value, &key); err != nil {
		panic(err)
	}
	key.Key = append(key.Key, 1)[:size]
	auth.SignerInfos[0].PublicKey.Value = must(proto.Marshal(&key))
}

func limits() []scenario {
	found := []scenario{
		usual("memo of 257 bytes", func(d *draft) { d.memo = strings.Repeat("m", 257) }),
		usual("memo of 129 letters of 2 bytes", func(d *draft) { d.memo = strings.Repeat("ü", 129) }),
		usual("timeout height past", func(d *draft) { d.timeout = 1 }),
		usual("timeout timestamp past", func(d *draft) {
			d.body = func(body *txtypes.TxBody) {
				body.TimeoutTimestamp = ptr(time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC))
			}
		}),
		usual("unordered", func(d *draft) {
			d.body = func(body *txtypes.TxBody) {
				body.Unordered = true
				body.TimeoutTimestamp = ptr(time.Date(2026, 1, 2, 3, 10, 0, 0, time.UTC))
			}
			d.auth = func(auth *txtypes.AuthInfo) { auth.SignerInfos[0].Sequence = 0 }
		}),
		usual("gas 0", func(d *draft) { d.gas = 0 }),
		usual("gas 0 without fee", func(d *draft) { d.gas, d.noFee = 0, true }),
		usual("gas of the block", func(d *draft) { d.gas = maxBlockGas }),
		usual("gas above the block's", func(d *draft) { d.gas = maxBlockGas + 1 }),
		usual("gas above 2^63", func(d *draft) { d.gas = 1 << 63 }),
		usual("gas of 2^63-1", func(d *draft) { d.gas = 1<<63 - 1 }),
	}
	// Where a transaction without gas ends says which step takes how much.
	for _, gas := range []uint64{1, 1_000, 2_000, 3_000, 5_000, 8_000, 10_000, 15_000, 20_000,
		25_000, 30_000, 35_000, 40_000, 45_000, 50_000, 55_000, 60_000, 65_000, 70_000} {
		found = append(found, usual(fmt.Sprintf("gas %d", gas), func(d *draft) { d.gas = gas }))
	}
	return found
}

func fees() []scenario {
	huge := must2(math.NewIntFromString("1" + strings.Repeat("0", 70)))
	return []scenario{
		fee("fee above the balance", coin("stake", 2_000_000_000)),
		fee("fee of an unknown coin", coin("nocoin", 1)),
		fee("fee unsorted", coin("token", 1), coin("stake", 1)),
		fee("fee of a coin twice", coin("stake", 1), coin("stake", 1)),
		fee("fee of zero", coin("stake", 0)),
		fee("fee of zero of a coin of two", coin("stake", 1), coin("token", 0)),
		fee("fee negative", coin("stake", -1)),
		fee("fee of a bad coin", coin("1", 1)),
		fee("fee huge", sdk.Coin{Denom: "stake", Amount: huge}),
		fee("fee of a coin that is not sent", coin("frozen", 10)),
		usual("fee that is no number", func(d *draft) {
			d.auth = func(auth *txtypes.AuthInfo) {
				auth.Fee = nil
			}
			// A fee whose coin has the amount "x".
			d.authTail = []byte{18, 16, 10, 10, 10, 5, 's', 't', 'a', 'k', 'e', 18, 1, 'x', 16, 0xc0, 0x9a, 0x0c}
		}),
		one("fee of the poor", func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs[0], d.signers = l.from("erin", "bob", coin("stake", 1)), by("erin")
			})
		}),
		one("fee that leaves too little", func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs[0], d.signers = l.from("erin", "bob", coin("stake", 60)), by("erin")
				d.fee = of(coin("stake", 50))
			})
		}),
		one("fee of all", func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs[0], d.signers = l.from("erin", "bob", coin("stake", 60)), by("erin")
				d.fee = of(coin("stake", 100))
			})
		}),
		one("fee granter", func(l *ledger) draft {
			return l.send(func(d *draft) { d.granter = l.world.address("alice").String() })
		}),
		one("fee granter who is the sender", func(l *ledger) draft {
			return l.send(func(d *draft) { d.granter = l.world.address("bob").String() })
		}),
		usual("fee granter who is none", func(d *draft) { d.granter = "nobody" }),
		usual("fee payer who is none", func(d *draft) { d.payer = "nobody" }),
		one("fee payer who does not sign", func(l *ledger) draft {
			return l.send(func(d *draft) { d.payer = l.world.address("alice").String() })
		}),
	}
}

func must2[T any](found T, ok bool) T {
	if !ok {
		panic("no value")
	}
	return found
}

func messages() []scenario {
	huge := must2(math.NewIntFromString("1" + strings.Repeat("0", 70)))
	return []scenario{
		paying("amount of zero", coin("token", 0)),
		paying("amount negative", coin("token", -1)),
		paying("amount unsorted", coin("token", 1), coin("stake", 1)),
		paying("amount of a coin twice", coin("token", 1), coin("token", 1)),
		paying("amount of a bad coin", coin("!", 1)),
		paying("amount of a short coin", coin("ab", 1)),
		paying("amount of no coin", coin("", 1)),
		paying("amount huge", sdk.Coin{Denom: "token", Amount: huge}),
		paying("amount above the balance", coin("token", 2_000_000_000)),
		paying("amount of an unknown coin", coin("nocoin", 1)),
		paying("no amount"),
		paying("coin that is not sent", coin("frozen", 1)),
		paying("coin that is not sent beside one that is", coin("frozen", 1), coin("token", 1)),
		one("amount that is no number", func(l *ledger) draft {
			return l.send(func(d *draft) { d.body = l.amountText("x") })
		}),
		one("amount without a number", func(l *ledger) draft {
			return l.send(func(d *draft) { d.body = l.amountText("") })
		}),
		one("amount with zeros before", func(l *ledger) draft {
			return l.send(func(d *draft) { d.body = l.amountText("007") })
		}),
		one("amount with a plus", func(l *ledger) draft {
			return l.send(func(d *draft) { d.body = l.amountText("+7") })
		}),
		one("amount of 2^256", func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.body = l.amountText("115792089237316195423570985008687907853269984665640564039457584007913129639936")
			})
		}),
		to("recipient empty", ""),
		to("recipient that is no address", "nobody"),
		to("recipient of another prefix", must(sdk.Bech32ifyAddressBytes("other", make([]byte, 20)))),
		to("recipient with a wrong checksum", "cosmos19rl4cm2hmr8afy4kldpxz3fka4jguq0auqdal5"),
		to("recipient in capitals", strings.ToUpper("cosmos19rl4cm2hmr8afy4kldpxz3fka4jguq0auqdal4")),
		to("recipient of 32 bytes", sdk.AccAddress(bytes.Repeat([]byte{3}, 32)).String()),
		to("recipient of 1 byte", sdk.AccAddress([]byte{3}).String()),
		one("recipient that is the fee collector", func(l *ledger) draft {
			return l.send(func(d *draft) { d.msgs[0] = l.from("bob", "fee_collector", coin("token", 1)) })
		}),
		one("recipient that is the pool", func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs[0] = l.from("bob", "bonded_tokens_pool", coin("stake", 1))
			})
		}),
		sender("sender empty", ""),
		sender("sender that is no address", "nobody"),
		sender("sender of another prefix", must(sdk.Bech32ifyAddressBytes("other", make([]byte, 20)))),
		multisend("multisend without inputs", nil, map[string]sdk.Coins{"carol": of(coin("token", 1))}),
		multisend("multisend without outputs", map[string]sdk.Coins{"bob": of(coin("token", 1))}, nil),
		one("multisend of two inputs", func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs[0] = l.multi(
					map[string]sdk.Coins{"alice": of(coin("token", 1)), "bob": of(coin("token", 1))},
					map[string]sdk.Coins{"carol": of(coin("token", 2))})
				d.signers = by("alice", "bob")
			})
		}),
		multisend("multisend of other sums", map[string]sdk.Coins{"bob": of(coin("token", 2))},
			map[string]sdk.Coins{"carol": of(coin("token", 1))}),
		multisend("multisend of other coins", map[string]sdk.Coins{"bob": of(coin("token", 1))},
			map[string]sdk.Coins{"carol": of(coin("stake", 1))}),
		multisend("multisend above the balance",
			map[string]sdk.Coins{"bob": of(coin("token", 2_000_000_000))},
			map[string]sdk.Coins{"carol": of(coin("token", 2_000_000_000))}),
		multisend("multisend of zero", map[string]sdk.Coins{"bob": of(coin("token", 0))},
			map[string]sdk.Coins{"carol": of(coin("token", 0))}),
		multisend("multisend of nothing", map[string]sdk.Coins{"bob": nil},
			map[string]sdk.Coins{"carol": nil}),
		multisend("multisend to the fee collector",
			map[string]sdk.Coins{"bob": of(coin("token", 1))},
			map[string]sdk.Coins{"fee_collector": of(coin("token", 1))}),
		multisend("multisend of a coin that is not sent",
			map[string]sdk.Coins{"bob": of(coin("frozen", 1))},
			map[string]sdk.Coins{"carol": of(coin("frozen", 1))}),
		one("multisend to no address", func(l *ledger) draft {
			return l.send(func(d *draft) {
				made := l.multi(map[string]sdk.Coins{"bob": of(coin("token", 1))}, nil)
				made.Outputs = []banktypes.Output{{Address: "nobody", Coins: of(coin("token", 1))}}
				d.msgs[0] = made
			})
		}),
		one("multisend of output unsorted", func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs[0] = l.multi(
					map[string]sdk.Coins{"bob": of(coin("stake", 1), coin("token", 1))},
					map[string]sdk.Coins{"carol": of(coin("token", 1), coin("stake", 1))})
			})
		}),
		one("second message above the balance", func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs = append(d.msgs, l.from("bob", "frank", coin("token", 2_000_000_000)))
			})
		}),
		one("second message that is invalid", func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs = append(d.msgs, l.from("bob", "frank", coin("token", 0)))
			})
		}),
		one("delegate", func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs[0] = &stakingtypes.MsgDelegate{
					DelegatorAddress: l.world.address("bob").String(),
					ValidatorAddress: sdk.ValAddress(l.world.address("alice")).String(),
					Amount:           coin("stake", 5),
				}
			})
		}),
		one("bank's parameters by bob", func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs[0] = &banktypes.MsgUpdateParams{
					Authority: l.world.address("bob").String(), Params: banktypes.DefaultParams()}
			})
		}),
		one("bank's coins of sends by bob", func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs[0] = &banktypes.MsgSetSendEnabled{
					Authority: l.world.address("bob").String(), UseDefaultFor: []string{"frozen"}}
			})
		}),
	}
}

// amountText changes the amount of the message to a text that may be none.
func (l *ledger) amountText(text string) func(*txtypes.TxBody) {
	paid := protowire.AppendTag(nil, 1, protowire.BytesType)
	paid = protowire.AppendString(paid, "token")
	paid = protowire.AppendTag(paid, 2, protowire.BytesType)
	paid = protowire.AppendString(paid, text)
	without := l.from("bob", "carol")
	return func(body *txtypes.TxBody) {
		value := must(proto.Marshal(without))
		value = protowire.AppendTag(value, 3, protowire.BytesType)
		body.Messages[0].Value = protowire.AppendBytes(value, paid)
	}
}

func to(name, address string) scenario {
	return usual(name, func(d *draft) { d.msgs[0].(*banktypes.MsgSend).ToAddress = address })
}

func sender(name, address string) scenario {
	return usual(name, func(d *draft) { d.msgs[0].(*banktypes.MsgSend).FromAddress = address })
}

func multisend(name string, inputs, outputs map[string]sdk.Coins) scenario {
	return one(name, func(l *ledger) draft {
		return l.send(func(d *draft) { d.msgs[0] = l.multi(inputs, outputs) })
	})
}

// several have more than one transaction.
func several() []scenario {
	at := func(l *ledger, sequence int64, recipient string, amount int64) []byte {
		return l.sign(l.send(func(d *draft) {
			d.msgs[0] = l.from("bob", recipient, coin("token", amount))
			d.signers[0].sequence = sequence
		}))
	}
	return []scenario{
		{name: "two in order", run: func(l *ledger) {
			l.block(sent{"first", at(l, 0, "carol", 1)}, sent{"second", at(l, 1, "carol", 2)})
			l.block(sent{"third", at(l, 0, "carol", 3)})
		}},
		{name: "two out of order", run: func(l *ledger) {
			l.block(sent{"second", at(l, 1, "carol", 2)}, sent{"first", at(l, 0, "carol", 1)})
		}},
		{name: "two of one sequence", run: func(l *ledger) {
			l.block(sent{"first", at(l, 0, "carol", 1)}, sent{"other", at(l, 0, "carol", 2)})
		}},
		{name: "sent again in the block", run: func(l *ledger) {
			raw := at(l, 0, "carol", 1)
			l.block(sent{"first", raw}, sent{"again", raw})
		}},
		{name: "sent again in the next block", run: func(l *ledger) {
			raw := at(l, 0, "carol", 1)
			l.block(sent{"first", raw})
			l.block(sent{"again", raw})
		}},
		{name: "spends what came in the block", run: func(l *ledger) {
			first := l.sign(l.send(func(d *draft) {
				d.msgs[0] = l.from("bob", "frank", coin("stake", 10_000))
			}))
			// The account has the next number once the first is in a block.
			second := l.sign(l.send(func(d *draft) {
				d.msgs[0] = l.from("frank", "carol", coin("stake", 1))
				d.signers = []signer{{name: "frank", number: 9}}
			}))
			l.block(sent{"first", first}, sent{"second", second})
		}},
		{name: "a failed message, then a good one", run: func(l *ledger) {
			l.block(sent{"first", at(l, 0, "carol", 2_000_000_000)}, sent{"second", at(l, 1, "carol", 1)})
		}},
		{name: "new accounts in a row", run: func(l *ledger) {
			l.block(sent{"first", at(l, 0, "frank", 1)}, sent{"second", at(l, 1, "somebody", 1)},
				sent{"third", at(l, 2, "else", 1)})
			l.block(sent{"fourth", at(l, 0, "one more", 1)})
		}},
		{name: "more gas than the block has", run: func(l *ledger) {
			var txs []sent
			for at := range 4 {
				txs = append(txs, sent{fmt.Sprint("part ", at), l.sign(l.send(func(d *draft) {
					for range 12 {
						d.msgs = append(d.msgs, l.from("bob", "carol", coin("token", 1)))
					}
					d.gas, d.signers[0].sequence = 500_000, int64(at)
				}))})
			}
			l.block(txs...)
			l.block()
		}},
		{name: "empty blocks", run: func(l *ledger) {
			for range 3 {
				l.block()
			}
		}},
		{name: "garbage between good ones", run: func(l *ledger) {
			l.block(sent{"first", at(l, 0, "carol", 1)}, sent{"garbage", []byte("garbage")},
				sent{"second", at(l, 1, "carol", 2)})
		}},
		{name: "timeout height passes", run: func(l *ledger) {
			raw := l.sign(l.send(func(d *draft) { d.timeout = 2 }))
			l.block()
			l.block(sent{"late", raw})
		}},
	}
}

// shared are of the account of two of three keys.
func shared() []scenario {
	by := func(names ...string) []signer { return []signer{{name: "multi", with: names}} }
	shared := func(name string, change func(*ledger, *draft)) scenario {
		return one(name, func(l *ledger) draft {
			return l.send(func(d *draft) {
				d.msgs[0] = l.from("multi", "carol", coin("token", 7))
				d.signers, d.mode = by("alice", "bob"), amino
				if change != nil {
					change(l, d)
				}
			})
		})
	}
	bits := func(d *draft, change func(*txtypes.ModeInfo_Multi)) {
		d.auth = func(auth *txtypes.AuthInfo) {
			change(auth.SignerInfos[0].ModeInfo.Sum.(*txtypes.ModeInfo_Multi_).Multi)
		}
	}
	return []scenario{
		shared("two of three keys", nil),
		shared("other two of three keys", func(_ *ledger, d *draft) { d.signers = by("alice", "carol") }),
		shared("last two of three keys", func(_ *ledger, d *draft) { d.signers = by("carol", "bob") }),
		shared("three of three keys", func(_ *ledger, d *draft) { d.signers = by("alice", "bob", "carol") }),
		shared("one of three keys", func(_ *ledger, d *draft) { d.signers = by("bob") }),
		shared("two of three keys, direct", func(_ *ledger, d *draft) { d.mode = direct }),
		shared("two of three keys to a new account", func(l *ledger, d *draft) {
			d.msgs[0] = l.from("multi", "frank", coin("stake", 1))
		}),
		shared("keys with a wrong signature", func(_ *ledger, d *draft) {
			d.raw = func(raw *txtypes.TxRaw) { raw.Signatures[0][10] ^= 1 }
		}),
		shared("keys with signatures that are no protobuf", func(_ *ledger, d *draft) {
			d.raw = func(raw *txtypes.TxRaw) { raw.Signatures[0] = []byte{0xff, 0xff} }
		}),
		shared("keys with one signature for two bits", func(_ *ledger, d *draft) {
			d.raw = func(raw *txtypes.TxRaw) { raw.Signatures[0] = raw.Signatures[0][:66] }
		}),
		shared("keys without bits", func(_ *ledger, d *draft) {
			bits(d, func(of *txtypes.ModeInfo_Multi) { of.Bitarray = nil })
		}),
		shared("keys with one bit more", func(_ *ledger, d *draft) {
			bits(d, func(of *txtypes.ModeInfo_Multi) { of.Bitarray.Elems[0] = 0xe0 })
		}),
		shared("keys with bits of four", func(_ *ledger, d *draft) {
			bits(d, func(of *txtypes.ModeInfo_Multi) { of.Bitarray.ExtraBitsStored = 4 })
		}),
		shared("keys with bits of two", func(_ *ledger, d *draft) {
			bits(d, func(of *txtypes.ModeInfo_Multi) { of.Bitarray.ExtraBitsStored = 2 })
		}),
		shared("keys with other bits", func(_ *ledger, d *draft) {
			bits(d, func(of *txtypes.ModeInfo_Multi) { of.Bitarray.Elems[0] = 0x60 })
		}),
		shared("keys with fewer modes", func(_ *ledger, d *draft) {
			bits(d, func(of *txtypes.ModeInfo_Multi) { of.ModeInfos = of.ModeInfos[:1] })
		}),
		shared("keys in single mode", func(_ *ledger, d *draft) {
			d.auth = func(auth *txtypes.AuthInfo) { auth.SignerInfos[0].ModeInfo = mode(amino) }
		}),
		shared("keys of threshold 1", func(l *ledger, d *draft) {
			d.signers[0].key = multisig.NewLegacyAminoPubKey(1, l.world.multi.GetPubKeys())
		}),
		shared("keys in another order", func(l *ledger, d *draft) {
			keys := slices.Clone(l.world.multi.GetPubKeys())
			slices.Reverse(keys)
			d.signers[0].key = multisig.NewLegacyAminoPubKey(2, keys)
		}),
		shared("keys of threshold 0", func(l *ledger, d *draft) { l.threshold(d, 0) }),
		shared("keys of threshold 4", func(l *ledger, d *draft) { l.threshold(d, 4) }),
		shared("keys, sequence too high", func(_ *ledger, d *draft) { d.signers[0].sequence = 1 }),
		{name: "two of three keys twice", run: func(l *ledger) {
			for at := range 2 {
				l.block(sent{fmt.Sprint("send ", at), l.sign(l.send(func(d *draft) {
					d.msgs[0] = l.from("multi", "carol", coin("token", 7))
					d.signers, d.mode = by("bob", "carol"), amino
				}))})
			}
		}},
	}
}

// threshold is the same keys with a threshold that they cannot have.
func (l *ledger) threshold(d *draft, of uint32) {
	d.auth = func(auth *txtypes.AuthInfo) {
		key := multisig.LegacyAminoPubKey{Threshold: of, PubKeys: l.world.multi.PubKeys}
		auth.SignerInfos[0].PublicKey = must(codectypes.NewAnyWithValue(&key))
	}
}

// funded have an account that gets coins in the second block, and signs in the third.
func funded() []scenario {
	paid := func(name string, count int, of func(*ledger, []signer) draft) scenario {
		return scenario{name: name, run: func(l *ledger) {
			var signers []signer
			outputs := map[string]sdk.Coins{}
			for at := range count {
				each := fmt.Sprint("key ", at)
				l.world.keys[each] = secp256k1.GenPrivKeyFromSecret([]byte(each))
				signers = append(signers, signer{name: each})
				outputs[each] = sdk.Coins{coin("stake", 10_000)}
			}
			given := of(l, signers)
			if first := given.signers[0]; first.with != nil || count == 0 {
				outputs = map[string]sdk.Coins{first.name: {coin("stake", 10_000)}}
			}
			sum := coin("stake", int64(len(outputs))*10_000)
			l.block(sent{"fund", l.sign(l.send(func(d *draft) {
				d.msgs[0] = l.multi(map[string]sdk.Coins{"bob": {sum}}, outputs)
				d.gas = 500_000
			}))})
			l.block(sent{name, l.sign(given)})
		}}
	}
	each := func(l *ledger, signers []signer) draft {
		return l.send(func(d *draft) {
			d.msgs, d.signers = nil, signers
			for _, who := range signers {
				d.msgs = append(d.msgs, l.from(who.name, "carol", coin("stake", 1)))
			}
			d.gas = 900_000
		})
	}
	keys := func(threshold int) func(*ledger, []signer) draft {
		return func(l *ledger, signers []signer) draft {
			var parts []cryptotypes.PubKey
			var names []string
			for _, who := range signers {
				parts = append(parts, l.world.keys[who.name].PubKey())
				names = append(names, who.name)
			}
			l.world.keys["many"] = manyKeys{multisig.NewLegacyAminoPubKey(threshold, parts)}
			return l.send(func(d *draft) {
				d.msgs[0] = l.from("many", "carol", coin("stake", 1))
				d.signers, d.mode = []signer{{name: "many", with: names[:threshold]}}, amino
			})
		}
	}
	return []scenario{
		paid("seven signers", 7, each),
		paid("eight signers", 8, each),
		paid("six of seven keys", 7, keys(6)),
		paid("one of eight keys", 8, keys(1)),
		paid("ed25519 key", 0, func(l *ledger, _ []signer) draft {
			l.world.keys["ed25519"] = ed25519.GenPrivKeyFromSecret([]byte("ed25519"))
			return l.send(func(d *draft) {
				d.msgs[0], d.signers = l.from("ed25519", "bob", coin("stake", 1)), by("ed25519")
			})
		}),
		paid("first of a new account", 0, func(l *ledger, _ []signer) draft {
			return l.send(func(d *draft) {
				d.msgs[0], d.signers = l.from("frank", "bob", coin("stake", 1)), by("frank")
			})
		}),
	}
}

// manyKeys stands for an account of several keys among those of one.
type manyKeys struct{ of *multisig.LegacyAminoPubKey }

func (k manyKeys) PubKey() cryptotypes.PubKey { return k.of }
