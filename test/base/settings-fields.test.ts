// What each kind of settings value accepts, and what it says of the rest.

import { expect, test } from "vitest";
import {
  duration,
  flagField,
  httpUrl,
  integer,
  listenAddress,
  listenText,
  listOf,
  cronTimes,
  oneOf,
  record,
  size,
  textField,
} from "../../src/base/settings-fields.ts";

test.each([
  ["text", textField(), "a", "a"],
  ["flag", flagField(), false, false],
  ["integer", integer(-1, 5), -1, -1],
  ["integer", integer(-1, 5), 5, 5],
  ["one of", oneOf("a", "b"), "b", "b"],
  ["times", cronTimes(), "off", "off"],
  ["times", cronTimes(), " 17  2 * * * ", "17 2 * * *"],
  ["times", cronTimes(), "*/5 0-6,22 1-31/2 12 7", "*/5 0-6,22 1-31/2 12 7"],
  ["duration", duration(), "250ms", 250],
  ["duration", duration(), "1.5s", 1_500],
  ["duration", duration(), "5min", 300_000],
  ["duration", duration(), "2h", 7_200_000],
  ["duration", duration(), "30d", 2_592_000_000],
  ["duration", duration("1s", "1h"), "1h", 3_600_000],
  ["size", size(), "0B", 0],
  ["size", size(), "64MiB", 67_108_864],
  ["size", size(), "2TiB", 2 * 2 ** 40],
  ["size", size("1KiB", "2KiB"), "2KiB", 2_048],
  ["listen", listenAddress(), "127.0.0.1:8080", { host: "127.0.0.1", port: 8_080 }],
  ["listen", listenAddress(), "[::1]:0", { host: "::1", port: 0 }],
  ["listen", listenAddress(), "edge.example.com:65535", { host: "edge.example.com", port: 65_535 }],
  ["url", httpUrl(), "https://central.example.com/", "https://central.example.com"],
  ["url", httpUrl(), "http://[::1]:8000/base/", "http://[::1]:8000/base"],
  ["list", listOf(integer(0, 9)), [1, 2], [1, 2]],
  ["list", listOf(integer(0, 9)), [], []],
  ["record", record({ a: { parse: flagField() } }), { a: true }, { a: true }],
  ["record", record({ a: { parse: flagField(), optional: true } }), {}, {}],
])("$0 takes $2", (_kind, parse, raw, value) => {
  expect(parse(raw)).toEqual({ ok: true, value });
});

test.each([
  ["text", textField(), "", "must be a text"],
  ["text", textField(/^[A-Z]{2}$/, "two capitals"), "de", "must be two capitals"],
  ["flag", flagField(), "yes", "must be true or false"],
  ["integer", integer(0, 5), 6, "must be an integer from 0 to 5"],
  ["integer", integer(0, 5), "3", "must be an integer from 0 to 5"],
  ["integer", integer(0, 5), 1.5, "must be an integer from 0 to 5"],
  ["one of", oneOf("a", "b"), "c", "must be one of a, b"],
  ["times", cronTimes(), "17 2 * *", /five fields of cron/],
  ["times", cronTimes(), "60 2 * * *", /five fields of cron/],
  ["times", cronTimes(), "0 2 0 * *", /five fields of cron/],
  ["times", cronTimes(), "0 6-2 * * *", /five fields of cron/],
  ["times", cronTimes(), "0 2 * * */0", /five fields of cron/],
  ["times", cronTimes(), "0 2 * * mon", /five fields of cron/],
  ["times", cronTimes(), "0 2 * * ,", /five fields of cron/],
  ["times", cronTimes(), 5, /five fields of cron/],
  ["duration", duration(), 60, /with a unit/],
  ["duration", duration(), "60", /with a unit/],
  ["duration", duration(), "60 s", /with a unit/],
  ["duration", duration(), "-1s", /with a unit/],
  ["duration", duration("1s", "1h"), "999ms", /from 1s to 1h/],
  ["duration", duration("1s", "1h"), "2h", /from 1s to 1h/],
  ["size", size(), "1MB", /\(B, KiB/],
  ["size", size(), "1.5MiB", /\(B, KiB/],
  ["size", size("1MiB"), "1023KiB", /from 1MiB/],
  ["listen", listenAddress(), ":8080", 'must be "host:port"'],
  ["listen", listenAddress(), "::1:8080", 'must be "host:port"'],
  ["listen", listenAddress(), "127.0.0.1:65536", 'must be "host:port"'],
  ["listen", listenAddress(), 8_080, 'must be "host:port"'],
  ["url", httpUrl(), "ftp://example.com", /http or https/],
  ["url", httpUrl(), "https://user:pw@example.com", /without credentials/],
  ["url", httpUrl(), "https://example.com/?a", /without credentials/],
  ["url", httpUrl(), "https://example.com/?", /without credentials/],
  ["url", httpUrl(), "https://example.com/#", /without credentials/],
  ["url", httpUrl(), "example.com", /http or https/],
  ["list", listOf(integer(0, 9)), [1, 10], "item 2 must be an integer from 0 to 9"],
  ["list", listOf(integer(0, 9), 1), [1, 2], "must be a list of at most 1"],
  ["list", listOf(integer(0, 9)), "1", /must be a list/],
  ["record", record({ a: { parse: flagField() } }), [], "must be a mapping with a"],
  ["record", record({ a: { parse: flagField() } }), {}, "a must be true or false, and is missing"],
  ["record", record({ a: { parse: flagField() } }), { a: true, b: 1 }, /must not have the key b/],
  [
    "record",
    record({ a: { parse: listOf(flagField()) } }),
    { a: [1] },
    "a item 1 must be true or false",
  ],
])("$0 refuses $2", (_kind, parse, raw, reason) => {
  expect(parse(raw)).toMatchObject({
    ok: false,
    reason: typeof reason === "string" ? reason : expect.stringMatching(reason),
  });
});

test.each(["127.0.0.1:8080", "[::]:80", "[::1]:0", "edge.example.com:443"])(
  "%s is shown as it was written",
  (text) => {
    const read = listenAddress()(text);
    expect(read.ok && listenText(read.value)).toBe(text);
  },
);
