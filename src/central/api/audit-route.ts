// The operator's view of the audit trail: the newest lines, or all since a moment, and on request those that
// come later.

import { setImmediate } from "node:timers/promises";
import type { ControlRoutes } from "../../base/control-socket.ts";
import { sleep } from "../../base/wait.ts";
import { AccelError } from "../../core/faults.ts";
import { decodeAuditAsked, type AuditAsked } from "../../wire/operator.ts";
import { handler } from "./operator-routes.ts";
import type { Transactions } from "../store/engine/customer-store.ts";
import {
  auditStretch,
  lastAuditId,
  type AuditLine,
  type AuditQuery,
} from "../store/people/audit.ts";

const linesDefault = 50;
/** The ids looked at in one transaction, which takes some 10 ms. */
const idsAtOnce = 10_000;
/** The pause between two looks for one who follows. */
const lookMs = 500;

export type AuditRouteDeps = {
  readonly store: Transactions;
  /** Ends those who follow. */
  readonly stop: AbortSignal;
};

export function auditRoute({ store, stop }: AuditRouteDeps): ControlRoutes {
  return {
    audit: handler(decodeAuditAsked, async function* lines(asked, gone) {
      const query = queryOf(asked);
      const count = asked.lines ?? (query.since === undefined ? linesDefault : undefined);
      const signal = AbortSignal.any([gone, stop]);
      // Tells at once whoever follows that central is there.
      if (asked.follow === true) yield { following: true };
      let after = await store.transact(lastAuditId);
      if (count === undefined) yield* forward(store, query, { after: 0, upTo: after }, signal);
      else yield* await newest(store, query, after, count, signal);
      while (asked.follow === true && (await sleep(lookMs, signal))) {
        const upTo = await store.transact(lastAuditId);
        yield* forward(store, query, { after, upTo }, signal);
        after = upTo;
      }
    }),
  };
}

async function* forward(
  store: Transactions,
  query: AuditQuery,
  { after, upTo }: { readonly after: number; readonly upTo: number },
  signal: AbortSignal,
): AsyncGenerator<AuditLine, void, undefined> {
  for (let from = after; from < upTo && !signal.aborted; from += idsAtOnce) {
    const ids = { after: from, upTo: Math.min(upTo, from + idsAtOnce) };
    for (const line of await store.transact(async (work) => auditStretch(work, query, ids)))
      yield line;
    await setImmediate(); // Gives others a turn: these transactions are quick, and there may be a thousand.
  }
}

/** Returns the newest lines, in order of id. */
async function newest(
  store: Transactions,
  query: AuditQuery,
  last: number,
  count: number,
  signal: AbortSignal,
): Promise<readonly AuditLine[]> {
  const stretches: (readonly AuditLine[])[] = [];
  let found = 0;
  for (let upTo = last; upTo > 0 && found < count && !signal.aborted; upTo -= idsAtOnce) {
    const ids = { after: Math.max(0, upTo - idsAtOnce), upTo };
    const lines = await store.transact(async (work) => auditStretch(work, query, ids));
    stretches.unshift(lines);
    found += lines.length;
    await setImmediate();
  }
  return stretches.flat().slice(Math.max(0, found - count));
}

function queryOf({ since, ...query }: AuditAsked): AuditQuery {
  if (since === undefined) return query;
  const at = new Date(since);
  if (Number.isNaN(at.getTime()))
    throw new AccelError("USAGE", `${since} is no time: write it as 2026-11-22T07:30:00Z`);
  return { ...query, since: at.toISOString() };
}
