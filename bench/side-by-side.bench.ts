// Clearing at our agent and at each cache that is installed, over the same 100,000 small objects: how long until the first miss, whether it is true, and the race of a clear with a fetch in flight.

import { inParallel } from "../test/support/demo.ts";
import { measureClear, race, sample, type Cleared, type Raced } from "./peers/clearing.ts";
import { directories, urlsIn } from "./peers/objects.ts";
import { startOrigin } from "./peers/origin.ts";
import {
  scopes,
  type Command,
  type Peer,
  type RunningPeer,
  type ScopeName,
  type Way,
} from "./peers/peer.ts";
import { peers } from "./peers/peers.ts";
import { Visitor } from "./peers/visitor.ts";

const titles: Readonly<Record<ScopeName, string>> = {
  one: "one URL",
  under: "1,000 beneath a directory",
  all: "everything",
};
const rounds: Readonly<Record<ScopeName, number>> = { one: 10, under: 5, all: 1 };
const raceRounds = 5;
/** A cache that is slower to fill is compared over the directories that are full by then. */
const fillWithinMs = 120_000;
const fillConnections = 32;

type Cell = {
  readonly by: string;
  readonly cleared: readonly Cleared[];
  readonly raced: readonly Raced[];
};
type Row = { readonly name: string; readonly cells: Readonly<Record<ScopeName, Cell | string>> };

export async function run(say: (line: string) => void): Promise<void> {
  const rows: Row[] = [];
  for (const peer of peers) {
    const found = peer.find();
    if ("missing" in found) say(`${peer.name}: skipped: ${found.missing}`);
    else rows.push(...(await comparePeer(peer, found.version, say)));
  }
  say("");
  say("until the first miss, median; × ours (the first line)");
  for (const row of rows) {
    say(row.name);
    for (const scope of scopes)
      say(`  ${titles[scope].padEnd(26)} ${clearOf(row, rows[0], scope)}`);
  }
  say("");
  say(`a fetch that read before the clear and ended after it, ${raceRounds} times each`);
  for (const row of rows)
    for (const scope of scopes)
      say(`${row.name.padEnd(20)} ${titles[scope].padEnd(26)} ${raceOf(row.cells[scope])}`);
  say("");
  const complete = rows.filter(isComplete).map(({ name }) => name);
  say(
    `all three scopes, true, and no fetch from before the clear served after it: ${complete.join("; ") || "none"}`,
  );
}

async function comparePeer(
  peer: Peer,
  version: string,
  say: (line: string) => void,
): Promise<readonly Row[]> {
  await using origin = await startOrigin();
  await using running = await peer.start(origin.port);
  if (running.ways.every((way) => scopes.every((scope) => "cannot" in way[scope]))) {
    say(`${peer.name} ${version}: cannot clear, not filled`);
    return running.ways.map(({ name, ...commands }) => ({ name, cells: reasons(commands) }));
  }
  const rows: Row[] = [];
  let filled: Filled | undefined;
  for (const [at, way] of running.ways.entries()) {
    const full: Filled = filled ?? (await fill(running, peer, version, say));
    const cells = reasons(way);
    for (const scope of scopes) {
      const command = way[scope];
      if ("cannot" in command) continue;
      const cleared: Cleared[] = [];
      for (let round = 0; round < rounds[scope]; round++)
        cleared.push(
          await measureClear(running, command, scopeOf(scope, full, at, round), full.known),
        );
      const raced: Raced[] = [];
      for (let round = 0; round < raceRounds; round++)
        raced.push(await race(running, command, origin, scope, `/race/${at}-${scope}-${round}/`));
      cells[scope] = { by: command.by, cleared, raced };
    }
    filled = "cannot" in way.all ? full : undefined;
    rows.push({ name: way.name, cells });
  }
  return rows;
}

function reasons(way: Pick<Way, ScopeName>): Record<ScopeName, Cell | string> {
  const reason = (command: Command): string =>
    "cannot" in command ? `cannot: ${command.cannot}` : "";
  return { one: reason(way.one), under: reason(way.under), all: reason(way.all) };
}

type Filled = { readonly directories: readonly string[]; readonly known: Map<string, number> };

async function fill(
  running: RunningPeer,
  peer: Peer,
  version: string,
  say: (line: string) => void,
): Promise<Filled> {
  await using visitor = Visitor.open(running, fillConnections);
  const known = new Map<string, number>();
  const full: string[] = [];
  const began = performance.now();
  for (const directory of directories()) {
    if (performance.now() - began > fillWithinMs) break;
    await inParallel(urlsIn(directory), fillConnections, async (url) => {
      known.set(url, await visitor.visit(url));
    });
    full.push(directory);
  }
  const tookS = (performance.now() - began) / 1_000;
  const asked = sample([...known.keys()], 1_000);
  let hits = 0;
  await inParallel(asked, 8, async (url) => {
    const number = await visitor.visit(url);
    if (number === known.get(url)) hits++;
    known.set(url, number);
  });
  say(
    `${peer.name} ${version}: ${known.size} objects in ${tookS.toFixed(0)} s, of ${asked.length} asked again ${hits} were cached`,
  );
  return { directories: full, known };
}

/** No two ways and rounds share a URL or a directory. */
function scopeOf(
  scope: ScopeName,
  { directories: full, known }: Filled,
  way: number,
  round: number,
): Parameters<typeof measureClear>[2] {
  const first = way * 10;
  const directory = full[first + (scope === "one" ? 0 : 1 + round)] ?? "";
  const outside = sample(urlsIn(full[first + 9] ?? ""), 50);
  const all = urlsIn(directory);
  if (scope === "under") return { target: directory, urls: all, polled: all.at(-1) ?? "", outside };
  if (scope === "one") {
    const url = all[round * 50] ?? "";
    return { target: url, urls: [url], polled: url, outside };
  }
  const everything = [...known.keys()];
  return { target: "/", urls: everything, polled: everything.at(-1) ?? "", outside: [] };
}

function medianMs({ cleared }: Cell): number | undefined {
  const sorted = cleared.map(({ missMs }) => missMs ?? Infinity).sort((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)];
  return median === Infinity ? undefined : median;
}

function clearOf(row: Row, ours: Row | undefined, scope: ScopeName): string {
  const cell = row.cells[scope];
  if (typeof cell === "string") return cell;
  const ms = medianMs(cell);
  const bare = ours?.cells[scope];
  const oursMs = bare === undefined || typeof bare === "string" ? undefined : medianMs(bare);
  const wrong = wrongsOf(cell);
  return [
    ms === undefined ? "not within 20 s" : `${ms.toFixed(1).padStart(8)} ms`,
    ms === undefined || oursMs === undefined ? "" : `${(ms / oursMs).toFixed(2).padStart(7)} ×`,
    cell.by,
    wrong.length === 0 ? "true" : `WRONG: ${wrong.join(", ")}`,
  ].join("  ");
}

function wrongsOf({ cleared }: Cell): readonly string[] {
  const total = (of: (one: Cleared) => number): number =>
    cleared.reduce((sum, one) => sum + of(one), 0);
  return [
    { count: total((one) => one.oldAfterDone), what: "old answers began after it said done" },
    { count: total((one) => one.oldLeft), what: "old answers left in the scope" },
    { count: total((one) => one.lostOutside), what: "lost outside the scope" },
  ].flatMap(({ count, what }) => (count === 0 ? [] : [`${count} ${what}`]));
}

/** Clears every scope, is true about it, and keeps no answer that was read before. */
function isComplete({ cells }: Row): boolean {
  return scopes.every((scope) => {
    const cell = cells[scope];
    return (
      typeof cell !== "string" &&
      wrongsOf(cell).length === 0 &&
      cell.raced.every(({ kept, joined }) => !kept && !joined)
    );
  });
}

function raceOf(cell: Cell | string): string {
  if (typeof cell === "string") return cell;
  const count = (of: (one: Raced) => boolean): number => cell.raced.filter(of).length;
  const kept = count((one) => one.kept);
  const joined = count((one) => one.joined);
  return [
    cell.by.padEnd(30),
    kept === 0 ? "never served later" : `STALE: old body served later ${kept} of ${raceRounds}`,
    joined === 0 ? "" : `old body to a visitor who came after the clear ${joined} of ${raceRounds}`,
  ].join("  ");
}
