// What is noted of instances whenever they are heard of: that they are seen, and what they told beside that. Thousands of them are noted by one statement, for thousands say hello and receipt at once.

import { sql } from "kysely";
import type { Hello } from "../../../wire/channel.ts";
import type { Position } from "../../../wire/position.ts";
import type { Queries } from "../engine/database.ts";
import { listed, rowsAtOnce, type RowOf } from "../engine/listed.ts";
import { parts } from "../engine/parts.ts";

export type InstanceKey = { readonly deploymentSiteId: number; readonly instanceId: string };

/** What is not told stays as it is. */
export type SeenInstance = InstanceKey & {
  readonly self?: Pick<Hello, "agent_version" | "edge"> | undefined;
  readonly position?: Position | undefined;
  /** It delivered logs just now. */
  readonly hasDelivered?: boolean;
};

/** Returns the instances that were heard of at that time or later, ISO 8601. */
export async function instancesSeenSince(
  db: Queries,
  since: string,
): Promise<readonly InstanceKey[]> {
  return db
    .selectFrom("instances")
    .where("last_seen", ">=", since)
    .select(["deployment_site_id as deploymentSiteId", "instance_id as instanceId"])
    .execute();
}

const seenColumns = {
  deployment_site_id: "integer",
  instance_id: "text",
  agent_version: "text",
  edge: "text?",
  epoch: "text?",
  applied_seq: "bigint",
  chain: "text?",
  oldest_unfinished: "text?",
  position_at: "text?",
  logs_confirmed_at: "text?",
} as const;

/**
 * They are seen now, each once, and the last that one of them told counts: it is the agent's word, and central judges it only when it is shown (`sitePositions`). An
 * instance that told nothing of itself yet is known by name only.
 */
export async function noteSeen(
  db: Queries,
  all: readonly SeenInstance[],
  at: string,
): Promise<void> {
  const distinct = new Map<string, SeenInstance>();
  // One statement cannot change a row twice.
  for (const one of all) {
    const key = instanceKeyText(one);
    distinct.set(key, together(distinct.get(key), one));
  }
  // In one order: of two that wait for each other one would be refused.
  const inOrder = [...distinct].toSorted(([one], [other]) => (one < other ? -1 : 1));
  const rows = inOrder.map(([, one]) => rowOf(one, at));
  for (const part of parts(rows, rowsAtOnce(db))) await writeSeen(db, part, at);
}

export const instanceKeyText = ({ deploymentSiteId, instanceId }: InstanceKey): string =>
  `${deploymentSiteId} ${instanceId}`;

function together(before: SeenInstance | undefined, now: SeenInstance): SeenInstance {
  return {
    ...now,
    self: now.self ?? before?.self,
    position: now.position ?? before?.position,
    hasDelivered: now.hasDelivered === true || before?.hasDelivered === true,
  };
}

/** An empty version: it told nothing of itself. */
function rowOf(
  { deploymentSiteId, instanceId, self, position, hasDelivered }: SeenInstance,
  at: string,
): RowOf<typeof seenColumns> {
  const { edge = null } = self ?? {};
  return {
    deployment_site_id: deploymentSiteId,
    instance_id: instanceId,
    agent_version: self?.agent_version ?? "",
    edge: edge === null ? null : JSON.stringify(edge),
    ...(position === undefined ? nowhere : standingAt(position, at)),
    logs_confirmed_at: hasDelivered === true ? at : null,
  };
}

const nowhere = {
  epoch: null,
  applied_seq: 0,
  chain: null,
  oldest_unfinished: null,
  position_at: null,
};

/** Returns a position as the row of its instance holds it. */
export function standingAt(position: Position, at: string) {
  const { epoch, applied_seq, chain, oldest_unfinished: oldest } = position;
  return {
    epoch,
    applied_seq,
    chain,
    oldest_unfinished: oldest === null ? null : JSON.stringify(oldest),
    position_at: at,
  };
}

async function writeSeen(
  db: Queries,
  rows: readonly RowOf<typeof seenColumns>[],
  at: string,
): Promise<void> {
  const columns = sql.join(Object.keys(seenColumns).map((column) => sql.ref(column)));
  // Behind ON CONFLICT `excluded` alone can be asked: what was not told is found there by what the columns hold then.
  const toldSelf = sql`excluded.agent_version <> ''`;
  const toldPosition = sql`excluded.position_at IS NOT NULL`;
  const where = (told: ReturnType<typeof sql>, names: readonly string[]) =>
    names.map((name) => {
      const column = sql.ref(name);
      return sql`${column} = CASE WHEN ${told} THEN excluded.${column} ELSE instances.${column} END`;
    });
  const told = [
    ...where(toldSelf, ["agent_version", "edge"]),
    ...where(toldPosition, Object.keys(nowhere)),
  ];
  // Without WHERE, SQLite would take ON for a part of a join.
  await sql`
    INSERT INTO instances (${columns}, last_seen)
    SELECT ${columns}, CAST(${at} AS text) FROM ${listed(db, seenColumns, rows)} AS given WHERE true
    ON CONFLICT (deployment_site_id, instance_id) DO UPDATE SET
      last_seen = excluded.last_seen,
      logs_confirmed_at = coalesce(excluded.logs_confirmed_at, instances.logs_confirmed_at),
      ${sql.join(told)}
  `.execute(db);
}
