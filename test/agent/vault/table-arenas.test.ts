// Tables of certificates in two pieces of memory: never the one in force, never before every thread has left, and nothing of older keys in what is free.

import { expect, test } from "vitest";
import { TableArenas } from "../../../src/agent/vault/table-arenas.ts";
import {
  CertificateTable,
  type CertificateTableRef,
  type InstalledCertificate,
} from "../../../src/core/serving/certificate-table.ts";
import { parseSha256 } from "../../../src/core/ids.ts";

function certificates(count: number, keyChars = 1_000): readonly InstalledCertificate[] {
  return Array.from({ length: count }, (_, no) => {
    const fingerprint = parseSha256(no.toString(16).padStart(64, "0"));
    if (fingerprint === undefined) throw new Error("no digest");
    const names = [`h${no}.example.com`];
    const texts = { chain: `chain ${no} é`, privateKey: `key ${no} `.padEnd(keyChars, "k") };
    return { names, notBeforeMs: 0, notAfterMs: no, fingerprint, ...texts };
  });
}

function read(ref: CertificateTableRef): readonly unknown[] {
  const table = new CertificateTable(ref);
  return table.certificates.map((one) => ({
    names: one.names,
    chain: table.chainOf(one),
    privateKey: table.keyOf(one),
  }));
}

const shown = (of: readonly InstalledCertificate[]): readonly unknown[] =>
  of.map(({ names, chain, privateKey }) => ({ names, chain, privateKey }));

test("the one in force stays as it is while the next are made, in two pieces for all of them", async () => {
  const arenas = new TableArenas(async () => undefined);
  const pieces = new Set<SharedArrayBuffer>();
  let inForce = await arenas.encode(certificates(1));
  arenas.use(inForce);
  let expected = shown(certificates(1));
  const numbers = new Set([inForce.no]);
  for (let no = 0; no < 200; no += 1) {
    const count = 1 + ((no * 7) % 40);
    const next = await arenas.encode(certificates(count));
    pieces.add(next.bytes);
    numbers.add(next.no);
    expect(next.bytes).not.toBe(inForce.bytes);
    expect(read(inForce)).toEqual(expected);
    expect(read(next)).toEqual(shown(certificates(count)));
    if (no % 3 === 0) continue; // It was not published.
    inForce = next;
    expected = shown(certificates(count));
    arenas.use(inForce);
  }
  expect(pieces.size).toBe(2);
  expect(numbers.size).toBe(201);
});

test("growing takes few pieces, and what is free holds no older key", async () => {
  const arenas = new TableArenas(async () => undefined);
  const pieces = new Set<SharedArrayBuffer>();
  let before: SharedArrayBuffer | undefined;
  for (let count = 1; count <= 400; count += 4) {
    const table = await arenas.encode(certificates(count));
    before = table.bytes;
    pieces.add(before);
    arenas.use(table);
  }
  expect(pieces.size).toBeLessThan(14);
  const small = await arenas.encode(certificates(1, 20));
  const after = await arenas.encode(certificates(1, 20));
  // Not in force yet: both went into the piece that was free.
  expect([after.bytes === small.bytes, after.bytes === before]).toEqual([true, false]);
  expect(Buffer.from(new Uint8Array(after.bytes)).includes("key 1 ")).toBe(false);
  arenas.use(after);
  expect(before !== undefined && Buffer.from(new Uint8Array(before)).includes("key 1 ")).toBe(true);
  await arenas.wipe();
  expect(before !== undefined && new Uint8Array(before).every((byte) => byte === 0)).toBe(true);
  expect(read(after)).toEqual(shown(certificates(1, 20)));
});

test("nothing is written before every thread has left what was in force before", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  let leaving = Promise.resolve();
  const arenas = new TableArenas(async () => leaving);
  const first = await arenas.encode(certificates(1));
  arenas.use(first);
  arenas.use(await arenas.encode(certificates(2)));
  leaving = promise;
  const third = arenas.encode(certificates(3));
  await Promise.resolve();
  expect(read(first)).toEqual(shown(certificates(1)));
  resolve();
  expect((await third).bytes).toBe(first.bytes);
});
