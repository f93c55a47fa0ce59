/**
 * What is measured of a clear at any cache. The time: from sending the command to the end of the first answer that was not cached before,
 * asked for without pause over two connections meanwhile. The truth: no old answer may begin after the cache has said that it is done, none may be left
 * in the scope, none outside may be lost. The race: a fetch that read its content before the clear and ends after it must not be served later.
 */

import { setTimeout as sleep } from "node:timers/promises";
import type { Origin } from "./origin.ts";
import type { Runnable, RunningPeer, ScopeName } from "./peer.ts";
import { Visitor } from "./visitor.ts";

export type Scope = {
  /** What the command takes: the URL, the directory, "/". */
  readonly target: string;
  readonly urls: readonly string[];
  /** Asked for while the clear runs: the last one of those that it will come to. */
  readonly polled: string;
  readonly outside: readonly string[];
};

export type Cleared = {
  /** Undefined: not within the deadline. */
  readonly missMs: number | undefined;
  readonly oldAfterDone: number;
  readonly oldLeft: number;
  readonly lostOutside: number;
};

export type Raced = {
  /** The visitor who came after the clear, while the old fetch went on, was given its answer. */
  readonly joined: boolean;
  /** The old answer was stored and served later. */
  readonly kept: boolean;
};

const missWithinMs = 20_000;
const pollPauseMs = 1;
const sampleMax = 100;
/** How long the visitor after the clear may wait for the old fetch before it is released. */
const joinMs = 300;
/** For a cache to store what it has just delivered. */
const settleMs = 100;

/** `known` are the numbers of the cached answers; it is kept up to date. */
export async function measureClear(
  peer: RunningPeer,
  command: Runnable,
  { target, urls, polled, outside }: Scope,
  known: Map<string, number>,
): Promise<Cleared> {
  const polls: { readonly began: number; readonly ended: number; readonly isOld: boolean }[] = [];
  const old = known.get(polled);
  await command.prepare?.();
  let sent = Infinity;
  let done = Infinity;
  const poll = async (): Promise<void> => {
    await using visitor = Visitor.open(peer, 1);
    for (const end = performance.now() + missWithinMs; performance.now() < end;) {
      const began = performance.now();
      const isOld = (await visitor.visit(polled)) === old;
      polls.push({ began, ended: performance.now(), isOld });
      if (!isOld && began > done) return;
      await sleep(pollPauseMs);
    }
  };
  const polling = Promise.all([poll(), poll()]);
  await sleep(20); // Both are connected and asking.
  sent = performance.now();
  const ran = command.run(target, urls).then(() => (done = performance.now()));
  await Promise.all([ran, polling]);
  if (polls.some(({ began, isOld }) => began < sent - 10 && !isOld))
    throw new Error(`${polled} was not cached before the clear`);
  const misses = polls.filter(({ ended, isOld }) => ended > sent && !isOld);
  await using visitor = Visitor.open(peer, 8);
  return {
    missMs: misses.length === 0 ? undefined : Math.min(...misses.map(({ ended }) => ended)) - sent,
    oldAfterDone: polls.filter(({ began, isOld }) => began > done && isOld).length,
    oldLeft: await count(visitor, sample(urls), known, (number, before) => number === before),
    lostOutside: await count(
      visitor,
      sample(outside),
      known,
      (number, before) => number !== before,
    ),
  };
}

async function count(
  visitor: Visitor,
  urls: readonly string[],
  known: Map<string, number>,
  counts: (number: number, before: number | undefined) => boolean,
): Promise<number> {
  let counted = 0;
  for (const url of urls) {
    const number = await visitor.visit(url);
    if (counts(number, known.get(url))) counted++;
    known.set(url, number);
  }
  return counted;
}

export function sample(urls: readonly string[], max: number = sampleMax): readonly string[] {
  const step = Math.max(1, urls.length / max);
  return Array.from(
    { length: Math.min(max, urls.length) },
    (_, at) => urls[Math.floor(at * step)] ?? "",
  );
}

/** `directory` is one that nothing was fetched from yet. */
export async function race(
  peer: RunningPeer,
  command: Runnable,
  origin: Origin,
  scope: ScopeName,
  directory: string,
): Promise<Raced> {
  const url = `${directory}page.html`;
  const target = scope === "one" ? url : scope === "under" ? directory : "/";
  await command.prepare?.();
  await using visitors = Visitor.open(peer, 4);
  const { held } = await origin.hold(url);
  const before = visitors.visit(url);
  await Promise.race([held, before]);
  await command.run(target, [url]);
  const after = visitors.visit(url);
  await Promise.race([after, sleep(joinMs)]);
  await origin.release(url);
  const [old, joined] = await Promise.all([before, after]);
  await sleep(settleMs);
  const later = new Set<number>();
  for (let i = 0; i < 4; i++) {
    await using visitor = Visitor.open(peer, 1);
    later.add(await visitor.visit(url));
  }
  return { joined: joined === old, kept: later.has(old) };
}
