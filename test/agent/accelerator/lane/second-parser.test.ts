// The scanner of plain heads beside nginx: what it takes, nginx reads alike or refuses. The benchmark `head-fuzz` does so with more heads.

import { expect, test } from "vitest";
import { scanHead } from "../../../../src/agent/accelerator/lane/head-scanner.ts";
import { compare, knownSeeds, takenOf, type Scanner } from "./head-fuzz.ts";
import { hasHostileHeads, hostileHeads } from "./hostile-heads.ts";
import { hasNginx, SecondParser } from "./second-parser.ts";

const half = 150_000;
const timeout = 300_000;

test.skipIf(!hasNginx)(
  "300,000 mutated heads: nginx reads none otherwise",
  { timeout },
  async () => {
    await using nginx = await SecondParser.open();
    const totals = { read: 0, refused: 0 };
    await nginx.compare([...takenOf(scanHead, half, 11)], totals);
    await nginx.compare([...takenOf(scanHead, half, 12, knownSeeds)], totals);
    expect(totals.read).toBeGreaterThan(15_000);
    expect(totals.refused).toBeLessThan(totals.read / 4);
  },
);

const wrong: readonly (readonly [string, Scanner])[] = [
  [
    "another target",
    (bytes, from) => {
      const found = scanHead(bytes, from);
      return found.kind === "plain" ? { ...found, url: found.url.replace("?", "/") } : found;
    },
  ],
  [
    "one field less",
    (bytes, from) => {
      const found = scanHead(bytes, from);
      return found.kind === "plain" && found.fields.length > 3
        ? { ...found, fields: found.fields.slice(0, -1) }
        : found;
    },
  ],
  [
    "a length that is passed over",
    (bytes, from) => {
      const text = bytes.toString("latin1").replaceAll(/content-length/gi, "content-lengtx");
      return scanHead(Buffer.from(text, "latin1"), from);
    },
  ],
];

test.skipIf(!hasNginx).each(wrong)("%s is found out", { timeout }, async (_what, scanner) => {
  await using nginx = await SecondParser.open();
  const taken = [...takenOf(scanner, 2_000, 13)];
  await expect(nginx.compare(taken, { read: 0, refused: 0 })).rejects.toThrow();
});

test(
  "300,000 mutated heads of those that misled others: node reads none otherwise",
  { timeout },
  () => {
    const { taken, fault } = compare(scanHead, 2 * half, 14, knownSeeds);
    expect(fault).toBeUndefined();
    expect(taken).toBeGreaterThan(5_000);
  },
);

test.skipIf(!hasHostileHeads)(
  "heads of attacks: neither reads any otherwise",
  { timeout },
  async () => {
    const heads = hostileHeads();
    expect(heads.length).toBeGreaterThan(200);
    expect(compare(scanHead, 100_000, 15, heads).fault).toBeUndefined();
    if (!hasNginx) return;
    await using nginx = await SecondParser.open();
    const totals = { read: 0, refused: 0 };
    await nginx.compare([...takenOf(scanHead, 30_000, 16, heads)], totals);
    expect(totals.read).toBeGreaterThan(3_000);
  },
);
