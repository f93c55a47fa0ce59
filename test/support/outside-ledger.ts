// What an observer outside both programs knows: each request that was sent, each answer that came, and each difference to what the programs say.

import { until } from "./until.ts";

/** One request as its sender saw it. `cache` is read off Cache-Status (RFC 9211), as a visitor could. */
export type Sent = {
  readonly agent: string;
  readonly siteId: number;
  readonly domain: string;
  readonly method: string;
  readonly target: string;
  readonly status: number;
  readonly cache: string;
  /** Bytes of the answer on the connection, head included. */
  readonly bytes: number;
};

/** Sums of one agent since its process started. */
export type AgentSums = {
  requests: number;
  bytes: number;
  readonly byLabels: Map<string, number>;
};

export class Ledger {
  readonly sent: Sent[] = [];
  readonly differences: string[] = [];
  comparisons = 0;
  readonly #sums = new Map<string, AgentSums>();

  add(one: Sent): void {
    this.sent.push(one);
    const sums = this.since(one.agent);
    sums.requests++;
    sums.bytes += one.bytes;
    const labels = `${one.domain} ${one.cache} ${Math.floor(one.status / 100)}xx`;
    sums.byLabels.set(labels, (sums.byLabels.get(labels) ?? 0) + 1);
  }

  since(agent: string): AgentSums {
    const known = this.#sums.get(agent);
    if (known !== undefined) return known;
    const fresh = { requests: 0, bytes: 0, byLabels: new Map<string, number>() };
    this.#sums.set(agent, fresh);
    return fresh;
  }

  /** A new process counts from 0. */
  restarted(agent: string): void {
    this.#sums.delete(agent);
  }

  /** Compares by JSON; says what differs, with both sides. */
  compare(what: string, told: unknown, seen: unknown): void {
    this.comparisons++;
    const [left, right] = [JSON.stringify(told), JSON.stringify(seen)];
    if (left === right) return;
    this.differences.push(`${what}: told ${left?.slice(0, 400)}, seen ${right?.slice(0, 400)}`);
  }
}

/** Counts of equal texts, as sorted pairs: two multisets are equal iff these are. */
export function multiset(texts: Iterable<string>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return counts;
}

/** What stands in one of the two and not in the other, with counts. */
export function multisetDifference(
  told: ReadonlyMap<string, number>,
  seen: ReadonlyMap<string, number>,
): readonly string[] {
  return [...new Set([...told.keys(), ...seen.keys()])]
    .filter((key) => (told.get(key) ?? 0) !== (seen.get(key) ?? 0))
    .map((key) => `${key}: told ${told.get(key) ?? 0}, seen ${seen.get(key) ?? 0}`);
}

/** Whatever is under way ends within seconds; then a difference is one. */
export const settleWithinMs = 30_000;

/** Compares until both agree or the time to settle is over. */
export async function settled(
  ledger: Ledger,
  what: string,
  seen: unknown,
  told: () => Promise<unknown>,
): Promise<void> {
  let last: unknown;
  await until(
    what,
    async () => {
      last = await told();
      return JSON.stringify(last) === JSON.stringify(seen);
    },
    settleWithinMs,
  ).catch(() => undefined);
  ledger.compare(what, last, seen);
}
