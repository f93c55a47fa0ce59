// The operator's view of the audit trail: the newest lines, or all since a moment, and on request those that come.

import type { ControlRoutes } from "../../base/control-socket.ts";
import { sleep } from "../../base/wait.ts";
import { AccelError } from "../../core/faults.ts";
import { decodeAuditAsked, type AuditAsked } from "../../wire/operator.ts";
import { handler, pages } from "./operator-routes.ts";
import type { AuditLine, AuditQuery } from "./operator-unit.ts";
import type { CustomerStore } from "./unit.ts";

const linesDefault = 50;
/** Between two looks of one who follows. */
const lookMs = 500;

export type AuditRouteDeps = {
  readonly store: CustomerStore;
  /** Ends those who follow. */
  readonly stop: AbortSignal;
};

export function auditRoute({ store, stop }: AuditRouteDeps): ControlRoutes {
  return {
    audit: handler(decodeAuditAsked, async function* lines(asked, gone) {
      const query = queryOf(asked);
      const count = asked.lines ?? (query.since === undefined ? linesDefault : undefined);
      const page = (from: number) =>
        pages(store, async (unit, range) => unit.audit.page(query, range), from);
      let after =
        count === undefined
          ? 0
          : (
              await store.run(async ({ audit }) => ({
                keep: true,
                value: await audit.before(query, count),
              }))
            ).value;
      const signal = AbortSignal.any([gone, stop]);
      // Whoever follows knows at once that central is there.
      if (asked.follow === true) yield { following: true };
      do {
        const rows = page(after);
        for (let next = await rows.next(); ; next = await rows.next()) {
          if (next.done === true) {
            after = next.value;
            break;
          }
          yield shown(next.value);
        }
      } while (asked.follow === true && (await sleep(lookMs, signal)));
    }),
  };
}

function queryOf({ customer_id: customerId, who, since }: AuditAsked): AuditQuery {
  if (since === undefined) return { customerId, who, since };
  const at = new Date(since);
  if (Number.isNaN(at.getTime()))
    throw new AccelError("USAGE", `${since} is no time: write it as 2026-11-22T07:30:00Z`);
  return { customerId, who, since: at.toISOString() };
}

/** As documents name things. */
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
