// Which central holds the channel of which agent.

import type { Tx } from "../engine/database.ts";
import { parts } from "../engine/parts.ts";

export type ChannelOf = {
  readonly siteId: number;
  readonly instanceId: string;
  /** The agent's start. */
  readonly bootId: string;
};

/** A channel that is told of. A higher id is newer. */
export type ChannelRow = ChannelOf & { readonly id: number; readonly central: string };

/** Adds channels of a central. Returns their ids in the order given, each higher than all that were given before. */
export async function addChannels(
  tx: Tx,
  central: string,
  channels: readonly ChannelOf[],
): Promise<readonly number[]> {
  const ids: number[] = [];
  for (const part of parts(channels)) {
    const rows = await tx
      .insertInto("channels")
      .values(
        part.map(({ siteId, instanceId, bootId }) => ({
          deployment_site_id: siteId,
          instance_id: instanceId,
          boot_id: bootId,
          central,
        })),
      )
      .returning("id")
      .execute();
    ids.push(...rows.map(({ id }) => id).toSorted((one, other) => one - other));
  }
  return ids;
}

export async function removeChannels(tx: Tx, ids: readonly number[]): Promise<void> {
  for (const part of parts(ids)) await tx.deleteFrom("channels").where("id", "in", part).execute();
}

export async function removeChannelsOf(tx: Tx, central: string): Promise<void> {
  await tx.deleteFrom("channels").where("central", "=", central).execute();
}

/** Returns the channels of all centrals but one. */
export async function channelsOfOthers(tx: Tx, central: string): Promise<readonly ChannelRow[]> {
  const rows = await tx
    .selectFrom("channels")
    .selectAll()
    .where("central", "!=", central)
    .orderBy("id")
    .execute();
  return rows.map((row) => ({
    id: row.id,
    siteId: row.deployment_site_id,
    instanceId: row.instance_id,
    bootId: row.boot_id,
    central: row.central,
  }));
}
