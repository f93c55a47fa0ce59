// From a devlove to the certificates that a domain orders.

import fc from "fast-check";
import { expect, test } from "vitest";
import { directoryDefault } from "../../../src/core/acme/directory-url.ts";
import {
  acmeNamesMax,
  acmeSaid,
  gatheredUntilMs,
  wantedCertificates,
  type WantedCertificate,
} from "../../../src/core/acme/wanted-names.ts";
import type { SiteInput } from "../../../src/core/serving/effective-devlove.ts";

const main = "a.example";
const email = "a@example.com";
const ordered: SiteInput = { tls: { acme: { email } } };
const elsewhere: SiteInput = { tls: { acme: { email, directory: "https://acme.example/dir" } } };

function wanted(
  domains: Readonly<Record<string, SiteInput>>,
  subs: readonly string[],
  had: readonly WantedCertificate[] = [],
) {
  const said = acmeSaid({ domains }, main);
  return said === undefined ? [] : wantedCertificates(said, main, subs, had);
}

test("a domain that orders nothing", () => {
  expect(acmeSaid({ domains: { [main]: {} } }, main)).toBeUndefined();
  expect(acmeSaid({ domains: { [main]: { tls: { acme: null } } } }, main)).toBeUndefined();
  expect(acmeSaid({ domains: {} }, main)).toBeUndefined();
});

test("sub-domains that the devlove does not name are ordered with the main domain", () => {
  expect(wanted({ [main]: ordered }, ["z.a.example", "b.a.example"])).toEqual([
    { email, directory: directoryDefault, part: 0, names: [main, "b.a.example", "z.a.example"] },
  ]);
});

test("a sub-domain that is named orders by itself, or not at all", () => {
  const domains = { [main]: ordered, "b.a.example": {}, "c.a.example": elsewhere };
  expect(wanted(domains, ["b.a.example", "c.a.example", "d.a.example"])).toEqual([
    { email, directory: directoryDefault, part: 0, names: [main, "d.a.example"] },
    { email, directory: "https://acme.example/dir", part: 0, names: ["c.a.example"] },
  ]);
});

test("a sub-domain orders where the main domain does not", () => {
  const domains = { [main]: {}, "b.a.example": ordered };
  expect(wanted(domains, ["b.a.example"]).map(({ names }) => names)).toEqual([["b.a.example"]]);
  // It is in the devlove, and was removed from the domain.
  expect(wanted(domains, [])).toEqual([]);
});

test("a certificate has a hundred names at most", () => {
  const subs = Array.from({ length: 150 }, (_, no) => `s${String(no).padStart(3, "0")}.a.example`);
  const parts = wanted({ [main]: ordered }, subs);
  expect(parts.map(({ part, names }) => [part, names.length])).toEqual([
    [0, 100],
    [1, 51],
  ]);
  expect(new Set(parts.flatMap(({ names }) => names)).size).toBe(151);
});

const hosts = (from: number, to: number): readonly string[] =>
  Array.from({ length: to - from }, (_, no) => `s${String(from + no).padStart(3, "0")}.a.example`);

test("a host stays where it is, and a new one comes into the last certificate that has room", () => {
  const before = wanted({ [main]: ordered }, hosts(0, 150));
  const [first, last] = before;
  const added = wanted({ [main]: ordered }, ["0.a.example", ...hosts(0, 150)], before);
  expect(added[0]).toEqual(first);
  expect(added[1]?.names).toEqual(["0.a.example", ...(last?.names ?? [])]);
  // The last is full: there is room in the first, since a host of it is gone.
  const full = wanted({ [main]: ordered }, hosts(0, 199), before);
  const again = wanted({ [main]: ordered }, [...hosts(1, 199), "z.a.example"], full);
  expect(again.map(({ names }) => names.length)).toEqual([100, 100]);
  expect(again[0]?.names).toContain("z.a.example");
  expect(again[1]).toEqual(full[1]);
});

test("a certificate without hosts is wanted no more, and its number is free", () => {
  const before = wanted({ [main]: ordered }, hosts(0, 250));
  const less = wanted({ [main]: ordered }, [...hosts(0, 99), ...hosts(199, 250)], before);
  expect(less.map(({ part }) => part)).toEqual([0, 2]);
  const more = wanted({ [main]: ordered }, [...hosts(0, 99), ...hosts(199, 350)], less);
  expect(more.map(({ part, names }) => [part, names.length])).toEqual([
    [0, 100],
    [1, 51],
    [2, 100],
  ]);
});

test("whatever comes and goes, each host is in one certificate, and none moves", () => {
  const some = fc.uniqueArray(fc.integer({ min: 0, max: 400 }), { maxLength: 350 });
  fc.assert(
    fc.property(fc.array(some, { minLength: 2, maxLength: 4 }), (steps) => {
      let had: readonly WantedCertificate[] = [];
      for (const numbers of steps) {
        const subs = numbers.map((no) => `s${no}.a.example`);
        const now = wanted({ [main]: ordered }, subs, had);
        const names = now.flatMap((one) => one.names);
        expect(names.toSorted()).toEqual([main, ...subs].toSorted());
        expect(now.every((one) => one.names.length <= acmeNamesMax)).toBe(true);
        expect(new Set(now.map(({ part }) => part)).size).toBe(now.length);
        for (const { part, names: before } of had)
          for (const name of before.filter((one) => names.includes(one)))
            expect(now.find((one) => one.part === part)?.names).toContain(name);
        had = now;
      }
    }),
    { numRuns: 30 },
  );
});

test("changes are gathered for five minutes, an hour at most", () => {
  const minute = 60_000;
  expect(gatheredUntilMs(0, 0)).toBe(5 * minute);
  expect(gatheredUntilMs(0, 30 * minute)).toBe(35 * minute);
  expect(gatheredUntilMs(0, 58 * minute)).toBe(60 * minute);
  expect(gatheredUntilMs(0, 61 * minute)).toBe(61 * minute);
});
