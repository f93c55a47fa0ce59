// Which servers can hold the store, and what an operator is told of the others.

import { expect, test } from "vitest";
import {
  serverFault,
  serverFactsOf,
  type ServerFacts,
} from "../../../../src/central/store/engine/postgres-server.ts";
import { placeText } from "../../../../src/central/store/engine/postgres-place.ts";

const good: ServerFacts = {
  version: 150_004,
  synchronousCommit: "on",
  fsync: "on",
  encoding: "UTF8",
  collationProvider: "c",
  collation: "C",
  isStandby: false,
};

test.each<Partial<ServerFacts>>([
  {},
  { version: 170_001 },
  { synchronousCommit: "remote_apply" },
  { synchronousCommit: "local" },
  { collation: "C.UTF-8" },
  { collationProvider: "b", collation: "C.UTF-8" },
])("good with %o", (facts) => {
  expect(serverFault({ ...good, ...facts }, "db")).toBeUndefined();
});

test.each<readonly [Partial<ServerFacts>, string, RegExp]>([
  [{ version: 140_011 }, "STORE_UNSUITED", /db is PostgreSQL 14, and central needs 15/],
  [{ version: 90_624 }, "STORE_UNSUITED", /PostgreSQL 9/],
  [{ synchronousCommit: "off" }, "STORE_UNSUITED", /synchronous_commit = off: orders .* lost/],
  [{ fsync: "off" }, "STORE_UNSUITED", /fsync = off/],
  [{ encoding: "SQL_ASCII" }, "STORE_UNSUITED", /encoding SQL_ASCII/],
  [{ collation: "de_DE.UTF-8" }, "STORE_UNSUITED", /collation de_DE\.UTF-8/],
  [{ collationProvider: "i" }, "STORE_UNSUITED", /collation/],
  [{ isStandby: true }, "STORE_UNREACHABLE", /db is a standby/],
])("refused with %o: %s", (facts, code, words) => {
  const fault = serverFault({ ...good, ...facts }, "db");
  expect(fault?.code).toBe(code);
  expect(fault?.message).toMatch(words);
});

test("the row of a server is read as it comes", () => {
  const row = {
    version: "150004",
    sync: "on",
    fsync: "on",
    encoding: "UTF8",
    provider: "c",
    collation: "C",
    standby: false,
  };
  expect(serverFactsOf(row)).toEqual(good);
});

test.each([
  ["db.example.com", "postgres://accel@db.example.com:5432/central"],
  ["2001:db8::1", "postgres://accel@[2001:db8::1]:5432/central"],
  ["/run/postgresql", "postgres://accel@/run/postgresql:5432/central"],
])("a place at %s is named without its password", (host, text) => {
  const password = (): string => "not to be seen";
  const place = { host, port: 5432, database: "central", user: "accel", password };
  expect(placeText({ ...place, tls: false, connections: 4 })).toBe(text);
});
