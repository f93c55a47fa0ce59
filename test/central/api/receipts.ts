// Receipts of agents as the agent side of central stores them.

import type { Api } from "./api-harness.ts";

type Given = {
  readonly siteId: number;
  readonly seq: number;
  readonly phase: "applied" | "gone" | "failed" | "refused";
  readonly detail?: Readonly<Record<string, unknown>>;
  readonly instanceId?: string;
  readonly tookMs?: number;
};

/** The instance is seen at the moment of its receipt. */
export async function receipt(api: Api, given: Given): Promise<void> {
  const { siteId, seq, phase, detail = {}, instanceId = "instance-1", tookMs = 7 } = given;
  await seen(api, siteId, instanceId);
  await api.store
    .insertInto("receipts")
    .values({
      deployment_site_id: siteId,
      instance_id: instanceId,
      seq,
      phase,
      detail: JSON.stringify(detail),
      took_ms: tookMs,
      when_received: api.clock.toISOString(),
    })
    .execute();
  api.receipts.stored();
}

type Seen = { readonly edge?: object; readonly logsConfirmedAt?: string };

export async function seen(
  api: Api,
  siteId: number,
  instanceId = "instance-1",
  { edge, logsConfirmedAt }: Seen = {},
): Promise<void> {
  const told = {
    last_seen: api.clock.toISOString(),
    ...(edge !== undefined && { edge: JSON.stringify(edge) }),
    ...(logsConfirmedAt !== undefined && { logs_confirmed_at: logsConfirmedAt }),
  };
  await api.store
    .insertInto("instances")
    .values({
      deployment_site_id: siteId,
      instance_id: instanceId,
      agent_version: "0.1.0",
      edge: null,
      applied_seq: 0,
      last_report: null,
      logs_confirmed_at: null,
      ...told,
    })
    .onConflict((conflict) =>
      conflict.columns(["deployment_site_id", "instance_id"]).doUpdateSet(told),
    )
    .execute();
}
