// The end of an import: the manifest that the agent uploaded becomes a viewset version, or the import fails with the reason.

import { setImmediate as nextTurn } from "node:timers/promises";
import type { BackendRules } from "../../../core/serving/backend-url.ts";
import { AccelError } from "../../../core/faults.ts";
import { parseSha256, type Sha256 } from "../../../core/ids.ts";
import type { DevloveContext, DevloveValidation } from "../../../wire/devlove-validate.ts";
import { devloveBytesMax } from "../../../core/serving/devlove.ts";
import {
  digestBytes,
  firstOf,
  type ManifestFacts,
  type ManifestVerdict,
} from "../../../wire/manifest-judgement.ts";
import { manifestBytesMax } from "../../../wire/manifest.ts";
import { holdBlobs } from "./blob-rows.ts";
import type { Queries, Store, Tx } from "../engine/database.ts";

type Blobs = {
  read(sha256: Sha256): Promise<Uint8Array | undefined>;
  sizeOf(sha256: Sha256): Promise<number | undefined>;
  /** Returns the sizes of those that are there. */
  sizes(wanted: readonly Sha256[]): Promise<ReadonlyMap<Sha256, number>>;
};

/** Judges without holding up who waits for the main thread. Throws what may be tried again. */
type Judge = {
  manifest(read: () => Promise<Uint8Array>): Promise<ManifestVerdict>;
  path(read: () => Promise<Uint8Array>, sha256: Sha256, size: number): Promise<string | undefined>;
  devlove(question: {
    readonly schema: string;
    readonly content: string;
    readonly context: Omit<DevloveContext, "backendGuard">;
  }): Promise<DevloveValidation>;
};

export type ImportDeps = {
  readonly store: Store;
  readonly blobs: Blobs;
  readonly judge: Judge;
  readonly backendRules: Pick<BackendRules, "otherLoopbackNamesAllowed">;
  readonly now: () => Date;
};

export type ImportJudgement =
  | {
      readonly ok: true;
      /** Null: the manifest has no views. */
      readonly filesBlob: Sha256 | null;
      readonly schema: string;
      readonly content: string;
      readonly files: number;
      readonly bytes: number;
    }
  | { readonly ok: false; readonly reason: string };

/** Asked for in one statement: a few milliseconds between two turns of the loop. */
const blobsAtOnce = 1_000;

const no = (reason: string): ImportJudgement => ({ ok: false, reason });

/**
 * Reads blobs, not the clock. Undefined where no such import is under way: a repeated receipt, or a domain deleted meanwhile. Throws what may be tried again.
 */
export async function judgeImport(
  deps: ImportDeps,
  importId: string,
  detail: Readonly<Record<string, unknown>>,
): Promise<ImportJudgement | undefined> {
  const { store, blobs, judge } = deps;
  const target = await store
    .selectFrom("imports")
    .innerJoin("domains", "domains.id", "imports.domain_id")
    .select(["domains.id", "domains.name"])
    .where("imports.id", "=", importId)
    .where("imports.state", "=", "started")
    .executeTakeFirst();
  if (target === undefined) return undefined;
  const digest = parseSha256(detail["manifest"]);
  const size = digest && (await blobs.sizeOf(digest));
  if (digest === undefined || size === undefined)
    return no("the manifest that the agent named was not uploaded");
  if (size > manifestBytesMax) return no(`the manifest has more than ${manifestBytesMax} bytes`);
  const read = async (): Promise<Uint8Array> => {
    const bytes = await blobs.read(digest);
    if (bytes !== undefined) return bytes;
    throw new AccelError("INTERNAL", `the manifest blob ${digest} was removed while it was judged`);
  };
  const verdict = await judge.manifest(read);
  if (!verdict.ok) return no(verdict.reason);
  const { facts } = verdict;
  const fault =
    (await contentFault(deps, facts, read)) ??
    (facts.twoSizes === null ? undefined : otherSize(JSON.stringify(facts.twoSizes)));
  if (fault !== undefined) return no(fault);
  const { schema, sha256 } = facts.devlove;
  const content = await readText(blobs, sha256);
  if (content === undefined)
    return no("the devlove file was not uploaded, is too large, or is not UTF-8");
  const subDomains = await store
    .selectFrom("sub_domains")
    .select("name")
    .where("domain_id", "=", target.id)
    .execute();
  const context = {
    ...deps.backendRules,
    mainDomain: target.name,
    subDomains: subDomains.map(({ name }) => name),
    nowMs: deps.now().getTime(),
  };
  const valid = await judge.devlove({ schema, content, context });
  if (!valid.ok) return no(describeDevloveErrors(valid.errors));
  const { files, bytes } = facts;
  const filesBlob = files === null ? null : digest;
  return { ok: true, filesBlob, schema, content, files: files ?? 0, bytes };
}

const otherSize = (what: string): string => `${what} has another size than the manifest says`;

/**
 * Says what is wrong with the contents that the manifest names, as they are stored. It looks in pieces: there
 * may be a million.
 */
async function contentFault(
  { blobs, judge }: ImportDeps,
  { digests, sizes }: ManifestFacts,
  read: () => Promise<Uint8Array>,
): Promise<string | undefined> {
  let missing = 0;
  let other: { readonly sha256: Sha256; readonly size: number } | undefined;
  for (let at = 0; at < sizes.length; at += blobsAtOnce) {
    const asked = digestsAt(digests, at, Math.min(at + blobsAtOnce, sizes.length));
    const stored = await blobs.sizes(asked);
    for (const [i, sha256] of asked.entries()) {
      const size = sizes[at + i] ?? 0;
      const found = stored.get(sha256);
      if (found === undefined) missing++;
      else if (found !== size) other ??= { sha256, size };
    }
    await nextTurn();
  }
  if (missing > 0) return `${missing} files of the manifest were not uploaded`;
  if (other === undefined) return undefined;
  const path = await judge.path(read, other.sha256, other.size);
  return otherSize(path === undefined ? `blob ${other.sha256}` : JSON.stringify(path));
}

function digestsAt(digests: Uint8Array, first: number, end: number): readonly Sha256[] {
  const hex = Buffer.from(
    digests.buffer,
    digests.byteOffset + first * digestBytes,
    (end - first) * digestBytes,
  ).toString("hex");
  return Array.from(
    { length: end - first },
    // The one form of a digest in hex.
    (_, i) => hex.slice(2 * digestBytes * i, 2 * digestBytes * (i + 1)) as Sha256,
  );
}

/** Undefined: it is not there, is too large, or is no UTF-8. */
async function readText(blobs: Blobs, sha256: Sha256): Promise<string | undefined> {
  const size = await blobs.sizeOf(sha256);
  if (size === undefined || size > devloveBytesMax) return undefined;
  const bytes = await blobs.read(sha256);
  try {
    return bytes && new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function describeDevloveErrors(
  errors: readonly { readonly path: string; readonly message: string }[],
): string {
  const reasons = errors.map(({ path, message }) => `${path} ${message}`);
  return `the devlove file is not valid: ${firstOf(reasons)}`;
}

/** Ends an import. One that has ended stays as it is. */
export async function endImport(
  tx: Tx,
  importId: string,
  judgement: ImportJudgement,
  at: string,
): Promise<void> {
  if (!judgement.ok) return failImport(tx, importId, judgement.reason, at);
  const started = await tx
    .selectFrom("imports")
    .select(["domain_id", "viewset_name"])
    .where("id", "=", importId)
    .where("state", "=", "started")
    .executeTakeFirst();
  if (started === undefined) return;
  const { domain_id: domainId, viewset_name: name } = started;
  const taken = await tx
    .selectFrom("viewsets")
    .select("id")
    .where("domain_id", "=", domainId)
    .where("name", "=", name)
    .executeTakeFirst();
  if (taken !== undefined)
    return failImport(tx, importId, `the domain has a viewset named ${name} already`, at);
  const { id: viewsetId } = await tx
    .insertInto("viewsets")
    .values({
      domain_id: domainId,
      name,
      comment: "",
      files_blob: judgement.filesBlob,
      manifest_blob: null,
      when_created: at,
      when_obsoleted: null,
    })
    .returning("id")
    .executeTakeFirstOrThrow();
  await holdBlobs(tx, [judgement.filesBlob]);
  await tx
    .insertInto("devlove_files")
    .values({ viewset_id: viewsetId, schema_id: judgement.schema, content: judgement.content })
    .execute();
  const { files, bytes } = judgement;
  await tx
    .updateTable("imports")
    .set({ state: "done", viewset_id: viewsetId, files, bytes, when_ended: at })
    .where("id", "=", importId)
    .execute();
}

export async function failImport(
  tx: Queries,
  importId: string,
  reason: string,
  at: string,
): Promise<void> {
  await tx
    .updateTable("imports")
    .set({ state: "failed", error: reason, when_ended: at })
    .where("id", "=", importId)
    .where("state", "=", "started")
    .execute();
}
