// Devlove files: one per viewset version and schema. Writing the first of a new name makes the version.

import type { DevloveFile } from "../../../wire/customer/devlove-file.ts";
import type { PageRange, Work } from "../engine/work.ts";
import { giveUpPreparation, openPreparations } from "../journal/preparations.ts";
import { holdBlobs } from "./blob-rows.ts";
import { versionNamed } from "./viewsets.ts";

type Write = { readonly schema: string; readonly content: string };

export type DevloveCreated =
  | { readonly outcome: "created"; readonly file: DevloveFile }
  /** The version has one of this schema already. */
  | { readonly outcome: "taken"; readonly id: number };

export async function listDevloveFiles(
  { tx }: Work,
  viewsetId: number,
  range: PageRange,
): Promise<readonly DevloveFile[]> {
  return tx
    .selectFrom("devlove_files")
    .select(["id", "schema_id as schema", "content"])
    .where("viewset_id", "=", viewsetId)
    .where("id", ">", range.after)
    .orderBy("id")
    .limit(range.limit)
    .execute();
}

export async function findDevloveFile(
  work: Work,
  viewsetId: number,
  id: number,
): Promise<DevloveFile | undefined> {
  const [file] = await listDevloveFiles(work, viewsetId, { after: id - 1, limit: 1 });
  return file?.id === id ? file : undefined;
}

/** Returns the id of the version's file with this schema. */
async function holderOf(
  { tx }: Work,
  viewsetId: number,
  schema: string,
): Promise<number | undefined> {
  const row = await tx
    .selectFrom("devlove_files")
    .select("id")
    .where("viewset_id", "=", viewsetId)
    .where("schema_id", "=", schema)
    .executeTakeFirst();
  return row?.id;
}

/** Creates a file. A new version takes the views of the domain's active one. */
export async function createDevloveFile(
  work: Work,
  domainId: number,
  viewsetName: string,
  write: Write,
): Promise<DevloveCreated> {
  const viewsetId =
    (await versionNamed(work, domainId, viewsetName)) ??
    (await createVersion(work, domainId, viewsetName));
  const holder = await holderOf(work, viewsetId, write.schema);
  if (holder !== undefined) return { outcome: "taken", id: holder };
  await giveUpPrepared(work, viewsetId);
  const { id } = await work.tx
    .insertInto("devlove_files")
    .values({ viewset_id: viewsetId, schema_id: write.schema, content: write.content })
    .returning("id")
    .executeTakeFirstOrThrow();
  return { outcome: "created", file: { id, ...write } };
}

/** Replaces a file. `taken`: another file of the version has this schema. */
export async function replaceDevloveFile(
  work: Work,
  viewsetId: number,
  id: number,
  { schema, content }: Write,
): Promise<"replaced" | "taken"> {
  const holder = await holderOf(work, viewsetId, schema);
  if (holder !== undefined && holder !== id) return "taken";
  await giveUpPrepared(work, viewsetId);
  await work.tx
    .updateTable("devlove_files")
    .set({ schema_id: schema, content })
    .where("id", "=", id)
    .execute();
  return "replaced";
}

/** A fleet that is asked about a version would decide on what it no longer is. */
async function giveUpPrepared(work: Work, viewsetId: number): Promise<void> {
  for (const preparation of await openPreparations(work.tx))
    if (preparation.viewsetId === viewsetId)
      await giveUpPreparation(work, preparation, "the version was changed before the decision");
}

async function createVersion({ tx, at }: Work, domainId: number, name: string): Promise<number> {
  const active = await tx
    .selectFrom("domains")
    .innerJoin("viewsets", "viewsets.id", "domains.active_viewset_id")
    .select("viewsets.files_blob")
    .where("domains.id", "=", domainId)
    .executeTakeFirst();
  const { id } = await tx
    .insertInto("viewsets")
    .values({
      domain_id: domainId,
      name,
      comment: "",
      files_blob: active?.files_blob ?? null,
      manifest_blob: null,
      when_created: at,
      when_obsoleted: null,
    })
    .returning("id")
    .executeTakeFirstOrThrow();
  await holdBlobs(tx, [active?.files_blob]);
  return id;
}
