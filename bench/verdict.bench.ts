// From an address as text to the verdict, beside others who can say whether an address is in a set; what a set takes in memory, beside nginx; and what a set
// of a million ranges costs while it changes.

import { BotJudge } from "../src/agent/bots/decisions/evidence.ts";
import { AddressReader } from "../src/core/addresses/address-reader.ts";
import { parseIp, type IpFamily } from "../src/core/addresses/ip.ts";
import type { SetElement } from "../src/core/addresses/set-digest.ts";
import { hostSetOf } from "../test/support/bot-tables.ts";
import { Figures } from "./support/figures.ts";
import { nginxGeoBytes } from "./support/nginx-geo.ts";
import { randomAddresses, randomRanges } from "./support/random-ranges.ts";
import { installIpSet, peers, type Peer } from "./support/verdict-peers.ts";
import { measureRebuilds } from "./support/verdict-rebuilds.ts";

const sizes = [1_000, 100_000, 1_000_000];
const addressesAsked = 100_000;
const rounds = 20;
const slices = 8;
/** A peer that takes longer is asked fewer addresses. */
const roundMsMax = 200;
const limits: Readonly<Record<string, { readonly most: number }>> = {
  "4/1000000": { most: 250 },
  "6/1000000": { most: 450 },
};

/** One text in one piece, as a socket tells its peer's address: joined ones and parts of others take everybody longer to read. */
const flat = (text: string): string => Buffer.from(text, "latin1").toString("latin1");

/** Nanoseconds a call, of each slice in its best round: on a shared machine the others measure the neighbours. */
function bestNs(addresses: readonly string[], action: (ip: string) => unknown): number {
  const oneNs = roundNs(addresses.slice(0, 10), action);
  const most = Math.max(10, Math.floor((roundMsMax * 1e6) / oneNs));
  const length = Math.min(most, addresses.length) / slices;
  const best = Array.from({ length: slices }, () => Number.POSITIVE_INFINITY);
  for (let round = 0; round < rounds; round++)
    for (let no = 0; no < slices; no++) {
      const slice = addresses.slice(Math.floor(no * length), Math.ceil((no + 1) * length));
      best[no] = Math.min(best[no] ?? 0, roundNs(slice, action));
    }
  return best.reduce((sum, ns) => sum + ns, 0) / slices;
}

function roundNs(addresses: readonly string[], action: (ip: string) => unknown): number {
  const began = performance.now();
  for (const ip of addresses) action(ip);
  return ((performance.now() - began) * 1e6) / addresses.length;
}

export async function run(say: (line: string) => void): Promise<void> {
  const figures = new Figures(say);
  using ipSet = installIpSet();
  if (ipSet === undefined) say("ip-set cannot be installed here: skipped");
  const others = ipSet === undefined ? peers : [...peers, ipSet];
  for (const family of [4, 6] as const) {
    figures.head(`IPv${family}: an address as text to its verdict (best of ${rounds} rounds)`);
    for (const size of sizes) lookups(figures, family, randomRanges(family, size, size), others);
  }
  // net.BlockList has single addresses in a hash table and only subnets in a trie: here it is at its best, and no limit is set.
  figures.head("IPv4, single addresses only");
  lookups(figures, 4, randomRanges(4, 100_000, 5, { from: 32, to: 32 }), others, true);
  figures.head("memory");
  for (const family of [4, 6] as const) await memory(figures, family, say);
  figures.head("rebuilds of a million ranges under visitors");
  await measureRebuilds(figures);
  if (figures.missed.length > 0) process.exitCode = 1;
}

function lookups(
  figures: Figures,
  family: IpFamily,
  ranges: readonly SetElement[],
  others: readonly Peer[],
  isAside = false,
): void {
  const size = ranges.length;
  const addresses = randomAddresses(family, ranges, addressesAsked, 11).map((text) => flat(text));
  const judge = new BotJudge({
    mode: "enforce",
    unknownBotsCanAccess: null,
    allow: new Set(),
    deny: new Set(),
    vip: [],
    bad: [hostSetOf(ranges)],
  });
  const isBlocked = (ip: string): boolean => judge.verdict(ip, undefined).kind === "block";
  const what = `${size.toLocaleString("en")} ranges`;
  if (size === sizes[0]) {
    const reader = new AddressReader();
    figures.add(
      "  of these parsing",
      bestNs(addresses, (ip) => reader.read(ip)),
      "ns",
    );
    figures.add("  parsing with ipaddr.js", bestNs(addresses.slice(0, 20_000), parseIp), "ns");
  }
  const own = bestNs(addresses, isBlocked);
  figures.add(what, own, "ns", isAside ? undefined : limits[`${family}/${size}`]);
  for (const peer of others) {
    if (size > peer.rangesMax) continue;
    const asks = peer.open(family, ranges);
    if (addresses.slice(0, 200).some((ip) => asks(ip) !== isBlocked(ip))) {
      figures.head(`${peer.name} gives wrong answers: left out`);
      continue;
    }
    const ns = bestNs(addresses, asks);
    const isLimited = !isAside && peer.name === "net.BlockList" && size === 100_000;
    const ratio = ns / own;
    const more = `${Math.round(ns).toLocaleString("en")} ns`;
    figures.add(`  ${peer.name}`, ratio, "× ours", isLimited ? { least: 8 } : undefined, more);
  }
}

async function memory(
  figures: Figures,
  family: IpFamily,
  say: (line: string) => void,
): Promise<void> {
  const count = 1_000_000;
  const ranges = randomRanges(family, count, 3);
  const { table } = hostSetOf(ranges);
  const bytes = table.buffer.byteLength / count;
  figures.add(`bytes an IPv${family} range of a million`, bytes, "B", {
    most: family === 4 ? 16 : 48,
  });
  const nginx = await nginxGeoBytes(ranges);
  if (nginx === undefined) say("nginx is not installed here: skipped");
  else
    figures.add(
      `  nginx geo, resident, IPv${family}`,
      nginx / count,
      "B",
      undefined,
      `${(nginx / count / bytes).toFixed(1)} × ours`,
    );
}
