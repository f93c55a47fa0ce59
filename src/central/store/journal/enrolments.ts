// Codes with which hosts join a deployment site. A code is 128 bits of chance; only its digest is kept. A host exchanges it
// for name and secret of the site: once for each of its uses, and again for ten minutes with the same nonce, because an
// answer may be lost on its way. No exchange changes the secret.

import type { Enrolment } from "../../../wire/customer/enrolment.ts";
import {
  codeLifetimeDefaultS,
  repeatedForMs,
  type Enrol,
  type EnrolAnswer,
} from "../../../wire/enrolment.ts";
import { sha256Of } from "../../../core/ids.ts";
import type { Store } from "../engine/database.ts";
import type { TableRow } from "../engine/schema.ts";
import type { PageRange, Work } from "../engine/work.ts";
import { recordAudit } from "../people/audit.ts";
import { siteWithSecret } from "./site-secret.ts";

/** How many codes of one site can be open at a time. */
export const openCodesMax = 20;
/** How long codes are listed after nobody can use them any more. */
const listedForMs = 30 * 86_400_000;

export type EnrolmentAsked = {
  readonly uses?: number | undefined;
  readonly lifetimeS?: number | undefined;
  readonly createdBy: string;
};

/** Makes a code: 32 hex characters, returned this once. `too-many`: the site has `openCodesMax` open ones. */
export async function createEnrolment(
  work: Work,
  deploymentSiteId: number,
  { uses = 1, lifetimeS = codeLifetimeDefaultS, createdBy }: EnrolmentAsked,
): Promise<{ readonly record: Enrolment; readonly code: string } | "too-many"> {
  const { tx, at, randomHex } = work;
  const all = await rows(work, deploymentSiteId, { after: 0, limit: Number.MAX_SAFE_INTEGER });
  if (all.filter(({ state }) => state === "open").length >= openCodesMax) return "too-many";
  const code = randomHex(16);
  const { id } = await tx
    .insertInto("enrolments")
    .values({
      deployment_site_id: deploymentSiteId,
      digest: sha256Of(code),
      uses,
      used: 0,
      created_by: createdBy,
      when_created: at,
      when_expires: new Date(Date.parse(at) + lifetimeS * 1_000).toISOString(),
      when_revoked: null,
    })
    .returning("id")
    .executeTakeFirstOrThrow();
  const record = await findEnrolment(work, deploymentSiteId, id);
  if (record === undefined) throw new TypeError("a code that was just made is not there");
  return { record, code };
}

export async function listEnrolments(
  work: Work,
  deploymentSiteId: number,
  range: PageRange,
): Promise<readonly Enrolment[]> {
  return rows(work, deploymentSiteId, range);
}

export async function findEnrolment(
  work: Work,
  deploymentSiteId: number,
  id: number,
): Promise<Enrolment | undefined> {
  const [one] = await rows(work, deploymentSiteId, { after: id - 1, limit: 1 });
  return one?.id === id ? one : undefined;
}

/** Revokes a code; answers that are still repeated end with it. Returns whether the site has such a code. */
export async function revokeEnrolment(
  { tx, at }: Work,
  deploymentSiteId: number,
  id: number,
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable("enrolments")
    .set((where) => ({ when_revoked: where.fn.coalesce("when_revoked", where.val(at)) }))
    .where("deployment_site_id", "=", deploymentSiteId)
    .where("id", "=", id)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

async function rows(
  { tx, at }: Work,
  deploymentSiteId: number,
  { after, limit }: PageRange,
): Promise<readonly Enrolment[]> {
  const found = await tx
    .selectFrom("enrolments")
    .selectAll()
    .where("deployment_site_id", "=", deploymentSiteId)
    .where("id", ">", after)
    .orderBy("id")
    .limit(limit)
    .execute();
  const lastUses = await lastUsesOf(tx, deploymentSiteId, found);
  return found.map((row) => ({
    id: row.id,
    deployment_site_id: row.deployment_site_id,
    state: stateOf(row, at),
    uses: row.uses,
    used: row.used,
    when_last_used: lastUses.get(row.id)?.at ?? null,
    last_used_from: lastUses.get(row.id)?.address ?? null,
    created_by: row.created_by,
    when_created: row.when_created,
    when_expires: row.when_expires,
  }));
}

/** Returns who exchanged each of these codes last, and when. `codes` is in the order of ids. */
async function lastUsesOf(
  tx: Work["tx"],
  deploymentSiteId: number,
  codes: readonly { readonly id: number }[],
): Promise<ReadonlyMap<number, { readonly address: string; readonly at: string }>> {
  const [first, last] = [codes[0], codes.at(-1)];
  if (first === undefined || last === undefined) return new Map();
  const uses = await tx
    .selectFrom("enrolment_uses")
    .innerJoin("enrolments", "enrolments.id", "enrolment_uses.enrolment_id")
    .select(["enrolment_id", "address", "at"])
    .where("deployment_site_id", "=", deploymentSiteId)
    .where("enrolment_id", ">=", first.id)
    .where("enrolment_id", "<=", last.id)
    .orderBy("at")
    .execute();
  return new Map(uses.map(({ enrolment_id: id, address, at }) => [id, { address, at }]));
}

function stateOf(row: TableRow<"enrolments">, at: string): Enrolment["state"] {
  if (row.when_revoked !== null) return "revoked";
  if (row.used >= row.uses) return "used";
  return row.when_expires <= at ? "expired" : "open";
}

export type Exchanged =
  | { readonly kind: "joined" | "repeated"; readonly answer: EnrolAnswer }
  | {
      readonly kind:
        | "unknown"
        | "revoked"
        | "expired"
        | "used-up"
        | "repeated-late"
        | "site-deleted";
    };

/** Exchanges a code for the site's name and secret, and tells the audit trail from which address. */
export async function exchangeCode(
  work: Work,
  { code, nonce }: Enrol,
  address: string,
): Promise<Exchanged> {
  const { tx, at } = work;
  const found = await tx
    .selectFrom("enrolments")
    .innerJoin("deployment_sites", "deployment_sites.id", "enrolments.deployment_site_id")
    .select([
      "enrolments.id",
      "deployment_site_id",
      "when_expires",
      "when_revoked",
      "when_deleted",
      "customer_id",
    ])
    .where("enrolments.digest", "=", sha256Of(code))
    .executeTakeFirst();
  if (found === undefined) return { kind: "unknown" };
  const { id, deployment_site_id: deploymentSiteId } = found;
  if (found.when_deleted !== null) return { kind: "site-deleted" };
  if (found.when_revoked !== null) return { kind: "revoked" };
  const before = await tx
    .selectFrom("enrolment_uses")
    .select("at")
    .where("enrolment_id", "=", id)
    .where("nonce_digest", "=", sha256Of(nonce))
    .executeTakeFirst();
  if (before !== undefined)
    return Date.parse(at) - Date.parse(before.at) <= repeatedForMs
      ? { kind: "repeated", answer: await credentials(work, deploymentSiteId) }
      : { kind: "repeated-late" };
  if (found.when_expires <= at) return { kind: "expired" };
  const taken = await tx
    .updateTable("enrolments")
    .set((where) => ({ used: where("used", "+", 1) }))
    .where("id", "=", id)
    .whereRef("used", "<", "uses")
    .returning(["used", "uses"])
    .executeTakeFirst();
  if (taken === undefined) return { kind: "used-up" };
  await tx
    .insertInto("enrolment_uses")
    .values({ enrolment_id: id, nonce_digest: sha256Of(nonce), address, at })
    .execute();
  await recordAudit(work, {
    via: "agent",
    who: `code ${id}`,
    user_id: null,
    customer_id: found.customer_id,
    action: "site join",
    ids: { deployment_site_id: deploymentSiteId, enrolment_id: id },
    change: { used: taken.used, uses: taken.uses },
    address,
    request_id: null,
  });
  return { kind: "joined", answer: await credentials(work, deploymentSiteId) };
}

async function credentials(work: Work, deploymentSiteId: number): Promise<EnrolAnswer> {
  const { name16, secret16 } = await siteWithSecret(work, deploymentSiteId);
  return { name16, secret16, deployment_site_id: deploymentSiteId };
}

/** Forgets codes whose time was over long ago. Returns how many. */
export async function dropEnrolments(store: Store, now: Date): Promise<number> {
  const { numDeletedRows } = await store
    .deleteFrom("enrolments")
    .where("when_expires", "<", new Date(now.getTime() - listedForMs).toISOString())
    .executeTakeFirst();
  return Number(numDeletedRows);
}
