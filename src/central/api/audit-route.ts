// The operator's view of the audit trail: the newest lines, or all since a moment, and on request those that come.

import { setImmediate } from "node:timers/promises";
import type { ControlRoutes } from "../../base/control-socket.ts";
import { sleep } from "../../base/wait.ts";
import type { AuditLine, AuditQuery } from "../../core/audit-trail.ts";
import { AccelError } from "../../core/faults.ts";
import { decodeAuditAsked, type AuditAsked } from "../../wire/operator.ts";
import { handler } from "./operator-routes.ts";
import type { CustomerUnit, Transactions } from "../store/people/customer-store.ts";

const linesDefault = 50;
/** Ids looked at in one transaction: some 10 ms. */
const idsAtOnce = 10_000;
type Audit = CustomerUnit["audit"];

/** Between two looks of one who follows. */
const lookMs = 500;

export type AuditRouteDeps = {
  readonly store: Transactions;
  /** Ends those who follow. */
  readonly stop: AbortSignal;
};

export function auditRoute({ store, stop }: AuditRouteDeps): ControlRoutes {
  const read = async <T>(action: (audit: Audit) => Promise<T>): Promise<T> =>
    (await store.run(async ({ audit }) => ({ keep: true, value: await action(audit) }))).value;
  return {
    audit: handler(decodeAuditAsked, async function* lines(asked, gone) {
      const query = queryOf(asked);
      const count = asked.lines ?? (query.since === undefined ? linesDefault : undefined);
      const signal = AbortSignal.any([gone, stop]);
      // Whoever follows knows at once that central is there.
      if (asked.follow === true) yield { following: true };
      let after = await read(async (audit) => audit.last());
      if (count === undefined) yield* forward(read, query, { after: 0, upTo: after }, signal);
      else yield* await newest(read, query, after, count, signal);
      while (asked.follow === true && (await sleep(lookMs, signal))) {
        const upTo = await read(async (audit) => audit.last());
        yield* forward(read, query, { after, upTo }, signal);
        after = upTo;
      }
    }),
  };
}

type Read = <T>(action: (audit: Audit) => Promise<T>) => Promise<T>;
type Shown = Readonly<Record<string, unknown>>;

async function* forward(
  read: Read,
  query: AuditQuery,
  { after, upTo }: { readonly after: number; readonly upTo: number },
  signal: AbortSignal,
): AsyncGenerator<Shown, void, undefined> {
  for (let from = after; from < upTo && !signal.aborted; from += idsAtOnce) {
    const ids = { after: from, upTo: Math.min(upTo, from + idsAtOnce) };
    for (const line of await read(async (audit) => audit.stretch(query, ids))) yield shown(line);
    await setImmediate(); // Others' turn: these transactions are quick, and there may be a thousand.
  }
}

/** Returns the newest lines, in order of id. */
async function newest(
  read: Read,
  query: AuditQuery,
  last: number,
  count: number,
  signal: AbortSignal,
): Promise<readonly Shown[]> {
  const stretches: (readonly AuditLine[])[] = [];
  let found = 0;
  for (let upTo = last; upTo > 0 && found < count && !signal.aborted; upTo -= idsAtOnce) {
    const ids = { after: Math.max(0, upTo - idsAtOnce), upTo };
    const lines = await read(async (audit) => audit.stretch(query, ids));
    stretches.unshift(lines);
    found += lines.length;
    await setImmediate();
  }
  return stretches
    .flat()
    .slice(Math.max(0, found - count))
    .map(shown);
}

function queryOf({ customer_id: customerId, who, since }: AuditAsked): AuditQuery {
  if (since === undefined) return { customerId, who, since };
  const at = new Date(since);
  if (Number.isNaN(at.getTime()))
    throw new AccelError("USAGE", `${since} is no time: write it as 2026-11-22T07:30:00Z`);
  return { customerId, who, since: at.toISOString() };
}

/** Shows a line with the names that documents use. */
function shown(line: AuditLine): Readonly<Record<string, unknown>> {
  return {
    id: line.id,
    at: line.at,
    via: line.via,
    who: line.who,
    user_id: line.userId,
    customer_id: line.customerId,
    action: line.action,
    ids: line.ids,
    change: line.change,
    address: line.address,
    request_id: line.requestId,
  };
}
