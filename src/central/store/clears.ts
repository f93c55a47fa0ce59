// Clears of the accelerator cache: asked for once, journaled to each deployment of the domain, answered by receipts.

import type { ClearDeployment, ClearState } from "../../wire/customer/clear.ts";
import { append, type Work } from "./work.ts";
import { sitesOfDomain } from "./links.ts";
import { readProof, type Proof } from "./proof.ts";
import { countOf, textsOf } from "./receipt-detail.ts";

export type NewClear = {
  readonly domainId: number;
  readonly main: string;
  /** The main domain: with its sub-domains; a sub-domain: that one only. */
  readonly host: string;
  readonly patterns: readonly string[];
};

/** `isProofWhole`: no further receipt is awaited from this deployment. */
export type ClearDeploymentState = ClearDeployment & { readonly isProofWhole: boolean };
export type ClearFound = Omit<ClearState, "deployments"> & {
  readonly deployments: readonly ClearDeploymentState[];
};

export function clears(work: Work) {
  const { tx } = work;
  return {
    async create({ domainId, main, host, patterns }: NewClear): Promise<string> {
      const clearId = work.randomHex(8);
      const only = host === main ? null : host;
      await tx
        .insertInto("clears")
        .values({
          id: clearId,
          domain_id: domainId,
          host: only,
          patterns: JSON.stringify(patterns),
          when_created: work.at,
        })
        .execute();
      const entries = await append(work, await sitesOfDomain(work, domainId), "cache.clear", {
        clear_id: clearId,
        domain: main,
        host: only,
        patterns: [...patterns],
      });
      for (const { deploymentSiteId, seq } of entries) {
        await tx
          .insertInto("clear_deployments")
          .values({ clear_id: clearId, deployment_site_id: deploymentSiteId, seq })
          .execute();
      }
      return clearId;
    },

    /** What is proved of it by now. */
    async state(customerId: number, clearId: string): Promise<ClearFound | undefined> {
      const clear = await tx
        .selectFrom("clears")
        .innerJoin("domains", "domains.id", "clears.domain_id")
        .select(["clears.host", "clears.patterns", "domains.name"])
        .where("domains.customer_id", "=", customerId)
        .where("clears.id", "=", clearId)
        .executeTakeFirst();
      if (clear === undefined) return undefined;
      const rows = await tx
        .selectFrom("clear_deployments")
        .select(["deployment_site_id", "seq"])
        .where("clear_id", "=", clearId)
        .orderBy("deployment_site_id")
        .execute();
      const deployments: ClearDeploymentState[] = [];
      for (const { deployment_site_id: siteId, seq } of rows) {
        const proof = await readProof(tx, siteId, seq, Date.parse(work.at));
        deployments.push(clearedAt(siteId, clear.name, proof));
      }
      const patterns: unknown = JSON.parse(clear.patterns);
      return {
        clear_id: clearId,
        domain: clear.host ?? clear.name,
        patterns: Array.isArray(patterns) ? patterns.map(String) : [],
        deployments,
      };
    },
  };
}

/** Pure. Counts are summed over instances, times are the longest. */
export function clearedAt(
  deploymentSiteId: number,
  domain: string,
  proof: Proof,
): ClearDeploymentState {
  const { state, error, lastSeen, receipts } = proof;
  const told = (phase: "applied" | "gone", key: string): number | null => {
    const counts = receipts
      .filter((receipt) => receipt.phase === phase)
      .map(({ detail }) => countOf(detail, key))
      .filter((count) => count !== undefined);
    return counts.length === 0 ? null : counts.reduce((sum, count) => sum + count, 0);
  };
  const applied = receipts.filter(({ phase }) => phase === "applied");
  const gone = new Set(receipts.filter(({ phase }) => phase === "gone").map((r) => r.instanceId));
  const isWidened = applied.some(
    ({ detail }) => detail["widened"] === true || textsOf(detail, "cleared").includes(domain),
  );
  const isProofWhole =
    state === "failed" ||
    (state === "applied" &&
      applied.every(
        ({ instanceId, detail }) => gone.has(instanceId) || detail["snapshot"] === true,
      ));
  return {
    deployment_site_id: deploymentSiteId,
    state,
    matched: told("applied", "matched"),
    removed: told("gone", "removed"),
    blocked_in_flight: told("gone", "blocked_in_flight"),
    took_ms: applied.length === 0 ? null : Math.max(...applied.map(({ tookMs }) => tookMs)),
    ...(isWidened && { widened: true }),
    ...(state === "pending" && lastSeen !== undefined && { last_seen: lastSeen }),
    ...(error !== undefined && { error }),
    isProofWhole,
  };
}
