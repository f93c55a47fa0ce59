// Requests that nobody should send, made from the OpenAPI document: each of its operations with values of wrong types, sizes, encodings and shapes among right ones.

import fc from "fast-check";
import { at, type Operation } from "./api-contract.ts";
import { bodyWith, examplesOf, pathSlots, type Slots } from "./api-world.ts";

export type OddRequest = {
  readonly method: string;
  /** With the prefix, as it goes over the wire. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | undefined;
  /** What it was made of, for people. */
  readonly of: string;
};

const prefix = "/presentation-api/v1";
const deep = 100_000;
const wide = 20_000;

const oddTexts = [
  "",
  " ",
  ".",
  "..",
  "../../etc/passwd",
  "null",
  "undefined",
  "NaN",
  "-1",
  "0",
  "00",
  "1e3",
  "1.5",
  "9007199254740993",
  "99999999999999999999999",
  "true",
  "'; DROP TABLE users; --",
  '" OR 1=1 --',
  "%",
  "_",
  "a\u0000b",
  "a\r\nX-Injected: 1",
  "\u202e\ufeff\u200b",
  "ＷＷＷ．example．com",
  "bücher.example.com",
  "xn--",
  "xn--0.example.com",
  "\ud83d\ude00.example.com",
  "WWW.EXAMPLE.COM.",
  "a".repeat(64) + ".com",
  "x".repeat(300),
  "x".repeat(5_000),
  "__proto__",
  "constructor",
  "toString",
  "${7*7}",
  "<script>alert(1)</script>",
  "192.0.2.1_33",
  "192.0.2.0_-1",
  "0.0.0.0_0",
  "::_0",
  "::ffff:1.2.3.4_96",
  "2001:db8::_128",
  "1.2.3.4_99999",
  "01.02.03.04",
  "*",
  "path:",
  'path:"',
  "(a OR",
  "NEAR(a b, 99999999)",
  "^a*",
] as const;

export const oddText: fc.Arbitrary<string> = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom(...oddTexts) },
  { weight: 2, arbitrary: fc.string({ unit: "binary", maxLength: 40 }) },
  { weight: 1, arbitrary: fc.string({ unit: "grapheme", maxLength: 300 }) },
);

const oddJson: fc.Arbitrary<unknown> = fc.oneof(
  oddText,
  fc.constantFrom<unknown>(
    null,
    true,
    0,
    -1,
    1.5,
    1e308,
    2 ** 53,
    [],
    {},
    [null],
    [[]],
    { a: { b: { c: {} } } },
    JSON.parse('{"__proto__":{"x":1}}'),
    Array.from({ length: 300 }, () => "x"),
  ),
  fc.jsonValue({ maxDepth: 4 }),
);

/** One member changed, taken away or added, somewhere. */
function mutated(value: unknown): fc.Arbitrary<unknown> {
  if (Array.isArray(value) && value.length > 0)
    return fc.oneof(
      oddJson,
      oddJson.map((odd) => [...value, odd]),
      mutated(value[0]).map((first) => [first, ...value.slice(1)]),
      fc.constant(Array.from({ length: 200 }, () => value[0])),
    );
  if (typeof value !== "object" || value === null) return oddJson;
  const names = Object.keys(value);
  const added = fc
    .tuple(fc.oneof(oddText, fc.constantFrom("id", "name", "customer")), oddJson)
    .map(([name, odd]) => ({ ...value, [name]: odd }));
  if (names.length === 0) return fc.oneof(oddJson, added);
  const changed = fc
    .constantFrom(...names)
    .chain((name) => mutated(at(value, name)).map((odd) => ({ ...value, [name]: odd })));
  const removed = fc
    .constantFrom(...names)
    .map((name) => Object.fromEntries(Object.entries(value).filter(([key]) => key !== name)));
  return fc.oneof(
    { weight: 6, arbitrary: changed },
    { weight: 2, arbitrary: removed },
    { weight: 2, arbitrary: added },
    { weight: 1, arbitrary: oddJson },
  );
}

const bytes = (text: string): Uint8Array => Buffer.from(text);

const hugeBytes = [
  bytes("[".repeat(deep)),
  bytes('{"a":'.repeat(deep)),
  bytes(`{${Array.from({ length: wide }, (_none, n) => `"k${n}":1`).join(",")}}`),
];

/** Texts that are no JSON, or more of it than anybody needs. */
function oddBytes(json: string): fc.Arbitrary<Uint8Array> {
  return fc.oneof(
    { weight: 1, arbitrary: fc.constantFrom(...hugeBytes) },
    {
      weight: 6,
      arbitrary: fc.constantFrom(
        bytes("["),
        bytes(`\ufeff${json}`),
        bytes(json.slice(0, -1)),
        bytes(`${json}${json}`),
        bytes(json.replace("{", '{"a":1,"a":2,')),
        Buffer.from(json, "utf16le"),
        Buffer.from([0x7b, 0xff, 0xfe, 0x7d]),
        bytes('"\\ud800"'),
        bytes("1e999"),
        bytes("[]"),
        bytes("null"),
        bytes(" "),
      ),
    },
    { weight: 2, arbitrary: fc.uint8Array({ maxLength: 200 }) },
  );
}

function bodyOf(operation: Operation, slots: Slots): fc.Arbitrary<Uint8Array | undefined> {
  const examples = examplesOf(operation).map((one) => bodyWith(one, slots));
  const ofOne = examples.map((example) => {
    const text = JSON.stringify(example ?? {});
    return fc.oneof(
      { weight: 2, arbitrary: fc.constant(example === undefined ? undefined : bytes(text)) },
      { weight: 9, arbitrary: mutated(example ?? {}).map((odd) => bytes(JSON.stringify(odd))) },
      { weight: 2, arbitrary: oddBytes(text) },
      { weight: 1, arbitrary: fc.constant(undefined) },
    );
  });
  return fc.oneof(...ofOne);
}

/** A segment of a path: mostly the customer's own. Deleting is tried on what nobody has, or the rest would be asked of nothing. */
function segmentOf(operation: Operation, slot: string, slots: Slots): fc.Arbitrary<string> {
  const own = operation.method === "DELETE" ? "900000001" : (slots[slot] ?? "none");
  const odd = oddText.map((text) => (text.isWellFormed() ? encodeURIComponent(text) : "%ED%A0%80"));
  return fc.oneof(
    { weight: 6, arbitrary: fc.constant(encodeURIComponent(own)) },
    { weight: 3, arbitrary: odd.map((text) => (text === "" || /^\.+$/.test(text) ? "%2e" : text)) },
    {
      weight: 1,
      arbitrary: fc.constantFrom("%zz", "%", "%E0%A4%A", "%00", "%2f", "%c0%af", ";a=b"),
    },
  );
}

function queryOf(operation: Operation): fc.Arbitrary<string> {
  const parameters: readonly unknown[] = Object(operation.told["parameters"]);
  const told = parameters.flatMap((one) => {
    if (at(one, "in") === "query") return [String(at(one, "name"))];
    return String(at(one, "$ref")).endsWith("/Limit") ? ["limit", "after"] : [];
  });
  // Mostly what the operation knows, or nothing else of it would be tried.
  const strange = fc.constantFrom("limit", "wait", "format", "x", "__proto__", "");
  const name =
    told.length === 0
      ? strange
      : fc.oneof(
          { weight: 9, arbitrary: fc.constantFrom(...told) },
          { weight: 1, arbitrary: strange },
        );
  const value = oddText.map((text) => encodeURIComponent(text.toWellFormed()));
  const pair = fc.tuple(name, value).map(([key, text]) => `${key}=${text}`);
  const all = fc.array(pair, { maxLength: 3 }).map((pairs) => pairs.join("&"));
  return fc
    .oneof(
      { weight: 9, arbitrary: fc.constant("") },
      { weight: told.length === 0 ? 1 : 9, arbitrary: all },
    )
    .map((text) => {
      // Waiting is not what is asked here.
      const query = text.replaceAll(/(?<=^|&)wait=[1-9]/g, "wait=0");
      const waits = told.includes("wait") && !/(?:^|&)wait=/.test(query);
      return `?${waits ? `wait=0${query === "" ? "" : "&"}${query}` : query}`;
    });
}

const contentTypes = [
  "application/json; charset=utf-16",
  "application/merge-patch+json",
  "text/plain",
  "text/json",
  "application/x-www-form-urlencoded",
  "multipart/form-data",
  "multipart/form-data; boundary=x",
  "multipart/form-data; boundary=",
  "application/json, text/plain",
  "a",
  "/",
  "application/json;".repeat(50),
] as const;

function headersOf(token: string): fc.Arbitrary<Record<string, string>> {
  const rarely = <T>(odd: fc.Arbitrary<T>, usual: T): fc.Arbitrary<T> =>
    fc.oneof({ weight: 12, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: odd });
  const authorization = rarely(
    fc.constantFrom(
      "",
      "Token",
      "Token ",
      "Bearer x",
      `Token ${token}x`,
      `token ${token}`,
      "Basic eA==",
      "Basic !!!",
      `Token ${"x".repeat(600)}`,
    ),
    `Token ${token}`,
  );
  const types = rarely(fc.constantFrom<string>(...contentTypes), "application/json");
  const encoding = rarely(fc.constantFrom("gzip", "br", "identity", "x"), "");
  const key = rarely(fc.constantFrom("k", "k2", "\u00e9", "a b", "x".repeat(256)), "");
  return fc
    .tuple(authorization, types, encoding, key, fc.nat({ max: 250 }))
    .map(([auth, type, coding, idempotency, host]) => ({
      "content-type": type,
      "x-forwarded-for": `198.51.100.${host}`,
      ...(auth !== "" && { authorization: auth }),
      ...(coding !== "" && { "content-encoding": coding }),
      ...(idempotency !== "" && { "idempotency-key": idempotency }),
    }));
}

/** One request of any operation. Make it once for many: what it is made of is not small. */
export function oddRequest(
  operations: readonly Operation[],
  world: { readonly token: string; readonly slots: Slots },
): fc.Arbitrary<OddRequest> {
  const headers = headersOf(world.token);
  return fc.oneof(...operations.map((operation) => oddRequestOf(operation, world.slots, headers)));
}

function oddRequestOf(
  operation: Operation,
  slots: Slots,
  ofHeaders: fc.Arbitrary<Record<string, string>>,
): fc.Arbitrary<OddRequest> {
  const segments = pathSlots(operation).map((slot) => segmentOf(operation, slot, slots));
  const odd = fc.constantFrom("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD");
  const method = fc.oneof(
    { weight: 30, arbitrary: fc.constant(operation.method) },
    { weight: 1, arbitrary: odd },
  );
  return fc
    .tuple(method, fc.tuple(...segments), queryOf(operation), ofHeaders, bodyOf(operation, slots))
    .map(([verb, parts, query, headers, body]) => {
      let next = 0;
      const path = operation.path.replaceAll(/\{\w+\}/g, () => parts[next++] ?? "none");
      const deletes = verb === "DELETE" && operation.method !== "DELETE";
      return {
        method: deletes ? "PATCH" : verb,
        path: `${prefix}${path}${query}`,
        headers,
        body: verb === "HEAD" || verb === "GET" ? undefined : body,
        of: `${operation.method} ${operation.path}`,
      };
    });
}
