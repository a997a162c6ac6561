// Objects and functions that tracers in JavaScript use: those of geth's eth/tracers/js.
//
// The value of this file is a function that Python calls with the name of an action and its
// arguments. The function returns the text of an error, or null.
(function () {
  "use strict";
  // Code of a tracer may replace what it finds in global objects, so keep the originals.
  const { fromHex, from: copyOf } = Uint8Array;
  const { toHex: hexOf } = Uint8Array.prototype;
  const { apply } = Reflect;
  const { parse, stringify } = JSON;
  const { isArray } = Array;
  const { slice: cut, toWellFormed } = String.prototype;
  const { trunc, min, max } = Math;
  const evaluate = eval;
  // More lines than this file has. The code of a tracer is evaluated after as many empty lines.
  const LINES = 1000;
  const ask = globalThis.host;
  delete globalThis.host;
  // The code of a tracer would get the functions of this file with it.
  delete Error.prepareStackTrace;

  let opcodes = [];
  let tracer, hooks, failure;
  let text = "";
  // The current instruction, and the call frame that begins or has ended.
  const now = { op: 0, pc: 0, gas: 0, depth: 0 };
  const begun = { type: "", from: "", to: "", gas: 0 };
  const ended = { gasUsed: 0, error: "" };

  // Stop the trace. Code that catches the exception can't continue the trace.
  function fail(message) {
    failure ??= { message, error: new Error() };
    throw failure.error;
  }

  // Return what Python knows. It returns null if the code asks for what there is not.
  function get(name, first, second, third) {
    const found = ask(name, first, second, third);
    return found === null ? fail(ask("reason")) : found;
  }

  // Conversions.

  const bytes = (hex) => apply(fromHex, Uint8Array, [hex]);
  const hex = (value) => apply(hexOf, value, []);
  const big = (text) => new Big(BigInt(text));

  function whole(value) {
    const number = trunc(Number(value)) || 0;
    return max(-Number.MAX_SAFE_INTEGER, min(number, Number.MAX_SAFE_INTEGER));
  }

  // Return the bytes of a hex string up to its first invalid digit.
  function decoded(value) {
    let digits = value.replace(/^0x/i, "");
    if (digits.length % 2) digits = "0" + digits;
    return bytes(/^([0-9a-f]{2})*/i.exec(digits)[0]);
  }

  function buffer(value, maybeHex) {
    const isText = typeof value === "string" || value instanceof String;
    if (isText && maybeHex) return decoded(`${value}`);
    if (isArray(value)) return apply(copyOf, Uint8Array, [value]);
    const isBytes = value instanceof Uint8Array && value.constructor === Uint8Array;
    return isBytes ? value : fail("invalid buffer type");
  }

  // Return the last bytes of a value, after zeros if it has too few.
  function fitted(value, size) {
    const made = new Uint8Array(size);
    const last = value.subarray(max(0, value.length - size));
    made.set(last, size - last.length);
    return made;
  }

  const address = (value, maybeHex) => hex(fitted(buffer(value, maybeHex), 20));

  // Integers of any size, with the methods of the package big-integer.

  class Big {
    #value;

    constructor(value) {
      this.#value = value;
    }

    static of(value, radix = 10) {
      if (value instanceof Big) return value.#value;
      if (value === undefined) return 0n;
      if (typeof value !== "string") return BigInt(value);
      const [, sign, digits] = /^([+-]?)(.*)$/s.exec(value);
      let made = 0n;
      if (Number(radix) === 10) {
        const [mantissa, exponent = "0"] = digits.split(/e\+?/i);
        made = BigInt(mantissa) * 10n ** BigInt(exponent);
      } else {
        if (!digits) throw new Error(`Invalid integer: ${value}`);
        const base = BigInt(radix);
        for (const digit of digits) {
          const number = parseInt(digit, 36);
          if (!(number < base)) throw new Error(`${digit} is not a valid digit in base ${radix}`);
          made = made * base + BigInt(number);
        }
      }
      return sign === "-" ? -made : made;
    }

    toString(radix = 10) {
      return this.#value.toString(radix);
    }

    toJSON() {
      return this.toString();
    }

    valueOf() {
      return Number(this.#value);
    }

    toJSNumber() {
      return this.valueOf();
    }

    divmod(other) {
      return { quotient: this.divide(other), remainder: this.mod(other) };
    }

    modPow(exponent, modulus) {
      const size = Big.of(modulus);
      let left = Big.of(exponent);
      let base = this.#value % size;
      let made = 1n % size;
      if (left < 0n) {
        base = Big.of(new Big(base).modInv(size));
        left = -left;
      }
      for (; left; left >>= 1n) {
        if (left & 1n) made = (made * base) % size;
        base = (base * base) % size;
      }
      return new Big(made);
    }

    modInv(modulus) {
      const size = Big.of(modulus);
      let [low, high, made, next] = [this.#value, size, 1n, 0n];
      while (high) {
        const times = low / high;
        [low, high, made, next] = [high, low - times * high, next, made - times * next];
      }
      if (low !== 1n && low !== -1n) {
        throw new Error(`${this} and ${modulus} are not co-prime`);
      }
      made *= low;
      return new Big(this.#value < 0n || made >= 0n ? made : made + size);
    }
  }

  const magnitude = (value) => (value < 0n ? -value : value);
  const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

  function divided(a, b, operation) {
    if (!b) throw new Error("Cannot divide by zero");
    return operation(a, b);
  }

  function power(base, exponent) {
    if (exponent >= 0n) return base ** exponent;
    return magnitude(base) === 1n ? base ** -exponent : 0n;
  }

  const operations = {
    "abs": magnitude,
    "negate": (a) => -a,
    "next": (a) => a + 1n,
    "prev": (a) => a - 1n,
    "square": (a) => a * a,
    "not": (a) => ~a,
    "add plus": (a, b) => a + b,
    "subtract minus": (a, b) => a - b,
    "multiply times": (a, b) => a * b,
    "divide over": (a, b) => divided(a, b, (a, b) => a / b),
    "mod remainder": (a, b) => divided(a, b, (a, b) => a % b),
    "pow": power,
    "and": (a, b) => a & b,
    "or": (a, b) => a | b,
    "xor": (a, b) => a ^ b,
    "shiftLeft": (a, b) => a << b,
    "shiftRight": (a, b) => a >> b,
    "compare compareTo": order,
    "compareAbs": (a, b) => order(magnitude(a), magnitude(b)),
    "equals eq": (a, b) => a === b,
    "notEquals neq": (a, b) => a !== b,
    "greater gt": (a, b) => a > b,
    "greaterOrEquals geq": (a, b) => a >= b,
    "lesser lt": (a, b) => a < b,
    "lesserOrEquals leq": (a, b) => a <= b,
    "isEven": (a) => !(a & 1n),
    "isOdd": (a) => !!(a & 1n),
    "isPositive": (a) => a > 0n,
    "isNegative": (a) => a < 0n,
    "isUnit": (a) => magnitude(a) === 1n,
    "isZero": (a) => !a,
    "isDivisibleBy": (a, b) => !!b && !(a % b),
  };
  for (const [names, operation] of Object.entries(operations)) {
    const method = function (other) {
      const made = operation(Big.of(this), Big.of(other));
      return typeof made === "bigint" ? new Big(made) : made;
    };
    for (const name of names.split(" ")) Big.prototype[name] = method;
  }

  function common(a, b) {
    while (b) [a, b] = [b, a % b];
    return magnitude(a);
  }

  const bigInt = (value, radix) => new Big(Big.of(value, radix));
  Object.assign(bigInt, {
    zero: new Big(0n),
    one: new Big(1n),
    minusOne: new Big(-1n),
    isInstance: (value) => value instanceof Big,
    max: (a, b) => bigInt(Big.of(a) > Big.of(b) ? a : b),
    min: (a, b) => bigInt(Big.of(a) < Big.of(b) ? a : b),
    gcd: (a, b) => new Big(common(Big.of(a), Big.of(b))),
    lcm(a, b) {
      const [first, second] = [magnitude(Big.of(a)), magnitude(Big.of(b))];
      return new Big(first && (first / common(first, second)) * second);
    },
    fromArray(digits, base = 10, isNegative = false) {
      const made = digits.reduce((sum, digit) => sum * Big.of(base) + Big.of(digit), 0n);
      return new Big(isNegative ? -made : made);
    },
  });

  // Global functions.

  Object.assign(globalThis, {
    bigInt,
    toHex: (value) => "0x" + hex(buffer(value, false)),
    toWord: (value) => fitted(buffer(value, true), 32),
    toAddress: (value) => fitted(buffer(value, true), 20),
    toContract: (creator, nonce) => bytes(get("created", address(creator, true), whole(nonce))),
    toContract2(creator, salt, code) {
      const word = hex(fitted(decoded(`${salt}`), 32));
      return bytes(get("created2", address(creator, true), word, hex(buffer(code, true))));
    },
    isPrecompiled: (value) => get("is_precompiled", address(value, true)),
    slice(value, start, end) {
      const whole_ = buffer(value, false);
      const [first, last] = [whole(start), whole(end)];
      if (first < 0 || first > last || last > whole_.length) {
        fail(
          `Tracer accessed out of bound memory: available ${whole_.length},` +
            ` offset ${first}, size ${last - first}`,
        );
      }
      return whole_.slice(first, last);
    },
  });

  // Objects that are passed to the functions of a tracer.

  const log = {
    op: {
      toNumber: () => now.op,
      toString: () => opcodes[now.op],
      isPush: () => now.op >= 0x5f && now.op <= 0x7f,
    },
    stack: {
      peek: (index) => big(get("word", whole(index))),
      length: () => get("stack_size"),
    },
    memory: {
      slice: (start, end) => bytes(get("memory", whole(start), whole(end))),
      getUint: (start) => big(get("memory_word", whole(start))),
      length: () => get("memory_size"),
    },
    contract: {
      getCaller: () => bytes(get("caller")),
      getAddress: () => bytes(get("address")),
      getValue: () => big(get("value")),
      getInput: () => bytes(get("input")),
    },
    getPC: () => now.pc,
    getGas: () => now.gas,
    getCost: () => get("cost"),
    getDepth: () => now.depth,
    getRefund: () => get("refund"),
    getError: () => get("error") || undefined,
  };
  const db = {
    getBalance: (account) => big(get("balance", address(account, false))),
    getNonce: (account) => get("nonce", address(account, false)),
    getCode: (account) => bytes(get("code", address(account, false))),
    getState(account, slot) {
      const key = hex(fitted(buffer(slot, false), 32));
      return bytes(get("storage", address(account, false), key));
    },
    exists: (account) => get("exists", address(account, false)),
  };
  const frame = {
    getType: () => begun.type,
    getFrom: () => bytes(begun.from),
    getTo: () => bytes(begun.to),
    getInput: () => bytes(get("frame_input")),
    getGas: () => begun.gas,
    getValue() {
      const value = get("frame_value");
      return value ? big(value) : undefined;
    },
  };
  const frameResult = {
    getGasUsed: () => ended.gasUsed,
    getOutput: () => bytes(get("frame_output")),
    getError: () => ended.error || undefined,
  };

  // Actions.

  function load(code, config, names) {
    opcodes = parse(names);
    tracer = evaluate("\n".repeat(LINES) + "(" + code + ")");
    const { result, fault, step, enter, exit, setup } = tracer;
    hooks = { result, fault, step, enter, exit };
    for (const name in hooks) {
      if (typeof hooks[name] !== "function") delete hooks[name];
    }
    for (const name of ["result", "fault"]) {
      if (!hooks[name]) fail(`trace object must expose a function ${name}()`);
    }
    if (!hooks.enter !== !hooks.exit) {
      fail("trace object must expose either both or none of enter() and exit()");
    }
    if (typeof setup === "function") apply(setup, tracer, [config]);
  }

  function result(context) {
    const { bytes: buffers, integers, others: ctx } = parse(context);
    for (const name in buffers) ctx[name] = bytes(buffers[name]);
    for (const name in integers) ctx[name] = big(integers[name]);
    // geth returns an empty object for null and undefined.
    text = stringify(apply(hooks.result, tracer, [ctx, db]) ?? {}) ?? "null";
  }

  const actions = {
    load,
    result,
    step(op, pc, gas, depth) {
      Object.assign(now, { op, pc, gas, depth });
      if (hooks.step) apply(hooks.step, tracer, [log, db]);
    },
    fault() {
      apply(hooks.fault, tracer, [log, db]);
    },
    enter(type, from, to, gas) {
      Object.assign(begun, { type, from, to, gas });
      if (hooks.enter) apply(hooks.enter, tracer, [frame]);
    },
    exit(gasUsed, error) {
      Object.assign(ended, { gasUsed, error });
      if (hooks.exit) apply(hooks.exit, tracer, [frameResult]);
    },
  };

  // Return the text of an exception, and the place in the tracer's code.
  function describe(error) {
    // QuickJS throws null if it has no memory left for an exception.
    let shown = "InternalError: out of memory";
    let { stack } = failure?.error ?? Object(error);
    if (failure) shown = failure.message;
    else if (error !== null) shown = `${error}`;
    for (const [, name, line, column] of `${stack}`.matchAll(/at (?:(\S+) )?\(?<input>:(\d+):(\d+)/g)) {
      if (line > LINES) {
        const place = `<eval>:${line - LINES}:${column}`;
        shown += name && name[0] !== "<" ? ` at ${name} (${place})` : ` at ${place}`;
        break;
      }
    }
    return apply(toWellFormed, apply(cut, shown, [0, 1000]), []);
  }

  return function (action, ...args) {
    if (action === "size") return text.length;
    if (action === "text") return text;
    failure = undefined;
    try {
      apply(actions[action], undefined, args);
      return failure ? describe() : null;
    } catch (error) {
      try {
        return describe(error);
      } catch {
        return "an exception that has no text";
      }
    }
  };
})()
