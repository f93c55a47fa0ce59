// The public HTTP cache tests through our agent and through each cache that is installed: who obeys the standard how far.

import {
  findCacheTests,
  runCacheTests,
  startCacheTestOrigin,
  type CacheTestResults,
} from "../test/support/cache-tests.ts";
import type { Peer } from "./peers/peer.ts";
import { peers } from "./peers/peers.ts";

type Row = { readonly name: string; readonly results: CacheTestResults };

export async function run(say: (line: string) => void): Promise<void> {
  const folder = await findCacheTests();
  if (folder === undefined) {
    say("skipped: npm cannot fetch the tests");
    return;
  }
  say(
    "tests of http-cache-tests for a reverse proxy; required: passed, failed, blocked by another",
  );
  const rows: Row[] = [];
  for (const peer of peers) {
    const found = peer.find();
    if ("missing" in found) {
      say(`${peer.name.padEnd(26)} skipped: ${found.missing}`);
      continue;
    }
    const results = await runThrough(peer, folder);
    const name = `${peer.name} ${found.version}`;
    rows.push({ name, results });
    say(lineOf(name, results));
  }
  const [ours, ...others] = rows;
  if (ours === undefined || others.length === 0) return;
  say(leadOf("required", ours, others));
  say(leadOf("optimal", ours, others));
  const missed = [...ours.results.byId.values()].filter(
    ({ kind, outcome }) => kind === "required" && outcome !== "pass",
  );
  for (const { id, outcome, why } of missed) say(`ours, required, ${outcome}: ${id}  ${why}`);
}

async function runThrough(peer: Peer, folder: string): Promise<CacheTestResults> {
  await using origin = await startCacheTestOrigin(folder);
  await using running = await peer.start(origin.port);
  const { url, host } = running;
  return await runCacheTests(folder, url, host === undefined ? {} : { host });
}

function lineOf(name: string, { required, optimal, check }: CacheTestResults): string {
  const of = ({ pass, fail, blocked }: CacheTestResults["required"]): string =>
    `${String(pass).padStart(3)} of ${pass + fail + blocked}`;
  return [
    name.padEnd(26),
    `required ${of(required)}, ${String(required.fail).padStart(2)} failed, ${String(required.blocked).padStart(2)} blocked`,
    `optimal ${of(optimal)}`,
    `checks ${of(check)}`,
  ].join("   ");
}

function leadOf(kind: "required" | "optimal", ours: Row, others: readonly Row[]): string {
  const passed = ({ results }: Row): number => results[kind].pass;
  const best = others.reduce((one, other) => (passed(other) > passed(one) ? other : one));
  const ahead = passed(ours) - passed(best);
  const place = ahead > 0 ? "ours leads" : ahead === 0 ? "ours shares the lead" : "ours is behind";
  const ratio = (passed(ours) / Math.max(1, passed(best))).toFixed(2);
  return `${kind}: ${place}, ${passed(ours)} against ${passed(best)} of ${best.name}: ${ratio} ×`;
}
