// Trials that fail: of a version that a fleet decided on, the next step takes it back on every site
// (fleet-activations.ts).

import type { Tx } from "../engine/database.ts";

/** A trial that failed at an instance: the place of the entry that activated the version there. */
export type FailedTrial = {
  readonly deploymentSiteId: number;
  readonly instanceId: string;
  readonly seq: number;
  readonly reason: string;
};

/**
 * How long after the decision a failed trial takes the version back: the longest trial (a day), and a day in which a host
 * that was away comes back. Later the fleet has served it for so long that one host's fault is that host's.
 */
export const takenBackWithinMs = 2 * 86_400_000;

/** Notes that a version which a fleet decided on failed its trial; the next step takes it back. `at`: now, ISO 8601. */
export async function noteFailedTrials(
  tx: Tx,
  failed: readonly FailedTrial[],
  at: string,
): Promise<void> {
  const since = new Date(Date.parse(at) - takenBackWithinMs).toISOString();
  for (const { deploymentSiteId, instanceId, seq, reason } of failed) {
    const told = `it failed on instance ${instanceId} of deployment site ${deploymentSiteId}: ${reason}`;
    await tx
      .updateTable("fleet_activations")
      .set({ state: "failing", reason: told })
      .where("state", "=", "activated")
      .where("reason", "is", null)
      .where("when_ended", ">=", since)
      .where((where) =>
        where.exists(
          where
            .selectFrom("viewset_deployments as place")
            .select("place.seq")
            .whereRef("place.domain_id", "=", "fleet_activations.domain_id")
            .whereRef("place.viewset_id", "=", "fleet_activations.viewset_id")
            .where("place.deployment_site_id", "=", deploymentSiteId)
            .where("place.seq", "=", seq),
        ),
      )
      .execute();
  }
}
