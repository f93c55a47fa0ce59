// From a devlove to the certificates that a domain orders.

import { expect, test } from "vitest";
import { directoryDefault } from "../../../src/core/acme/directory-url.ts";
import { acmeSaid, wantedCertificates } from "../../../src/core/acme/wanted-names.ts";
import type { SiteInput } from "../../../src/core/serving/effective-devlove.ts";

const main = "a.example";
const email = "a@example.com";
const ordered: SiteInput = { tls: { acme: { email } } };
const elsewhere: SiteInput = { tls: { acme: { email, directory: "https://acme.example/dir" } } };

function wanted(domains: Readonly<Record<string, SiteInput>>, subs: readonly string[]) {
  const said = acmeSaid({ domains }, main);
  return said === undefined ? [] : wantedCertificates(said, main, subs);
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
