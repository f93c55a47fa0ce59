// What journals tell of classes of bots, and to whom it is told again.
//
// An agent of the release before refuses the entry and is past it. The update that lets it take such entries does not bring the entry back, so central
// looks whether the instance refused the newest one, and appends the state once more. To agents that took it that changes nothing.

import { sql } from "kysely";
import type { JournalBody } from "../../../wire/journal.ts";
import type { Queries, Store, Tx } from "../engine/database.ts";
import { insertListed } from "../engine/listed.ts";
import { parts } from "../engine/parts.ts";
import type { SharedCommits } from "../engine/shared-commits.ts";
import { append, type Work } from "../engine/work.ts";
import { appendJournal } from "./journal.ts";
import { policyBodies } from "./site-state.ts";

/**
 * How many times the state is told again until the policies change: once for each host that is updated, and an end to
 * it where an agent refuses what it says that it takes.
 */
const repeatsMax = 256;

/** Tells sites what their policies, which are the same, say of classes. One that never had any is told nothing: older agents would refuse it for nothing. */
export async function announceClasses(
  work: Work,
  siteIds: readonly number[],
  body: JournalBody<"policy.classes">,
): Promise<void> {
  const concerned = body.domains.length === 0 ? await sitesTold(work.tx, siteIds) : siteIds;
  const entries = await append(work, concerned, "policy.classes", body);
  await insertListed(
    work.tx,
    "told_classes",
    { deployment_site_id: "integer", seq: "bigint", repeats: "integer" },
    entries.map(({ deploymentSiteId, seq }) => {
      return { deployment_site_id: deploymentSiteId, seq, repeats: 0 };
    }),
    sql`ON CONFLICT (deployment_site_id) DO UPDATE SET seq = excluded.seq, repeats = excluded.repeats`,
  );
}

/** Those of the sites that were told something of classes before. */
async function sitesTold(db: Queries, siteIds: readonly number[]): Promise<readonly number[]> {
  const told: number[] = [];
  for (const part of parts(siteIds)) {
    const rows = await db
      .selectFrom("told_classes")
      .select("deployment_site_id as id")
      .where("deployment_site_id", "in", part)
      .execute();
    told.push(...rows.map(({ id }) => id));
  }
  return told;
}

export type ToldAgainDeps = {
  readonly store: Store;
  readonly commits: Pick<SharedCommits, "run">;
  /** The time, ISO 8601. */
  readonly at: () => string;
};

/**
 * Tells a site once more if the instance refused what it was told last; without an instance, if it was told at all.
 * Returns whether the journal is longer now, for the caller to wake its channels.
 */
export async function tellClassesAgain(
  { store, commits, at }: ToldAgainDeps,
  siteId: number,
  instanceId?: string,
): Promise<boolean> {
  const isMissed = async (db: Queries): Promise<boolean> =>
    instanceId === undefined ? wasTold(db, siteId) : wasRefused(db, siteId, instanceId);
  if (!(await isMissed(store))) return false;
  let grew = false;
  await commits.run(async (tx) => {
    grew = await isMissed(tx); // Another one of the site may have asked meanwhile.
    if (grew) await repeat(tx, siteId, at());
  });
  return grew;
}

async function wasRefused(db: Queries, siteId: number, instanceId: string): Promise<boolean> {
  const row = await db
    .selectFrom("told_classes")
    .innerJoin("receipts", (join) =>
      join
        .onRef("receipts.deployment_site_id", "=", "told_classes.deployment_site_id")
        .onRef("receipts.seq", "=", "told_classes.seq"),
    )
    .select("receipts.seq")
    .where("told_classes.deployment_site_id", "=", siteId)
    .where("repeats", "<", repeatsMax)
    .where("receipts.instance_id", "=", instanceId)
    .where("phase", "=", "refused")
    .executeTakeFirst();
  return row !== undefined;
}

async function wasTold(db: Queries, siteId: number): Promise<boolean> {
  const told = await toldClasses(db, siteId);
  return told !== undefined && told.repeats < repeatsMax;
}

async function repeat(tx: Tx, siteId: number, at: string): Promise<void> {
  const { repeats = 0 } = (await toldClasses(tx, siteId)) ?? {};
  const { classes, policy } = await policyBodies(tx, siteId);
  for (const { seq } of await appendJournal(tx, [siteId], "policy.classes", classes, at))
    await noteTold(tx, siteId, { seq, repeats: repeats + 1 });
  await appendJournal(tx, [siteId], "policy.changed", policy, at);
}

type Told = { readonly seq: number; readonly repeats: number };

async function toldClasses(db: Queries, siteId: number): Promise<Told | undefined> {
  return db
    .selectFrom("told_classes")
    .select(["seq", "repeats"])
    .where("deployment_site_id", "=", siteId)
    .executeTakeFirst();
}

async function noteTold(tx: Tx, siteId: number, told: Told): Promise<void> {
  await tx
    .insertInto("told_classes")
    .values({ deployment_site_id: siteId, ...told })
    .onConflict((conflict) => conflict.column("deployment_site_id").doUpdateSet(told))
    .execute();
}
