// The end of an import: the manifest that the agent uploaded becomes a viewset version, or the import fails with the reason.

import type { BackendRules } from "../../core/backend-url.ts";
import { messageOf } from "../../core/faults.ts";
import { parseSha256, type Sha256 } from "../../core/ids.ts";
import { validateDevlove } from "../../wire/devlove-validate.ts";
import { canonicalJson } from "../../core/canonical-json.ts";
import { devloveBytesMax } from "../../wire/devlove.ts";
import {
  caseFaults,
  decodeManifest,
  manifestBytesMax,
  type Manifest,
} from "../../wire/manifest.ts";
import type { Store, Tx } from "./database.ts";

type Blobs = {
  read(sha256: Sha256): Promise<Uint8Array | undefined>;
  sizeOf(sha256: Sha256): Promise<number | undefined>;
  /** Of those that are there. */
  sizes(wanted: readonly Sha256[]): Promise<ReadonlyMap<Sha256, number>>;
};

export type ImportDeps = {
  readonly store: Store;
  readonly blobs: Blobs;
  readonly backendRules: BackendRules;
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

const errorsShown = 5;

const no = (reason: string): ImportJudgement => ({ ok: false, reason });

/** Reads blobs, not the clock. Undefined where no such import is under way: a repeated receipt, or a domain deleted meanwhile. */
export async function judgeImport(
  { store, blobs, backendRules }: ImportDeps,
  importId: string,
  detail: Readonly<Record<string, unknown>>,
): Promise<ImportJudgement | undefined> {
  const target = await store
    .selectFrom("imports")
    .innerJoin("domains", "domains.id", "imports.domain_id")
    .select(["domains.id", "domains.name"])
    .where("imports.id", "=", importId)
    .where("imports.state", "=", "started")
    .executeTakeFirst();
  if (target === undefined) return undefined;
  const digest = parseSha256(detail["manifest"]);
  const raw = digest && (await readAtMost(blobs, digest, manifestBytesMax));
  if (digest === undefined || raw === undefined)
    return no("the manifest that the agent named was not uploaded");
  if (raw === "too large") return no(`the manifest has more than ${manifestBytesMax} bytes`);
  const manifest = parseManifest(raw);
  if (typeof manifest === "string") return no(`the manifest is not valid: ${manifest}`);
  const collisions = caseFaults(manifest);
  if (collisions.length > 0) return no(`the manifest is not valid: ${firstOf(collisions)}`);
  const files = manifest.files ?? [];
  const sizes = await blobs.sizes(files.map(({ sha256 }) => sha256));
  const missing = new Set(
    files.filter(({ sha256 }) => !sizes.has(sha256)).map((file) => file.sha256),
  );
  if (missing.size > 0) return no(`${missing.size} files of the manifest were not uploaded`);
  const other = files.find(({ sha256, size }) => sizes.get(sha256) !== size);
  if (other !== undefined)
    return no(`${JSON.stringify(other.path)} has another size than the manifest says`);
  const content = await readText(blobs, manifest.devlove.sha256);
  if (content === undefined)
    return no("the devlove file was not uploaded, is too large, or is no UTF-8");
  const subDomains = await store
    .selectFrom("sub_domains")
    .select("name")
    .where("domain_id", "=", target.id)
    .execute();
  const valid = validateDevlove(manifest.devlove.schema, content, {
    ...backendRules,
    mainDomain: target.name,
    subDomains: subDomains.map(({ name }) => name),
  });
  if (!valid.ok) return no(describeDevloveErrors(valid.errors));
  return {
    ok: true,
    filesBlob: manifest.files === null ? null : digest,
    schema: manifest.devlove.schema,
    content,
    files: files.length,
    bytes: files.reduce((sum, { size }) => sum + size, 0),
  };
}

/** Activations take over the list of files as it stands: it has to be the one text of its meaning. */
function parseManifest(raw: Uint8Array): Manifest | string {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(raw);
    const decoded = decodeManifest(JSON.parse(text));
    if (!decoded.ok) return decoded.reason;
    return canonicalJson(decoded.manifest) === text ? decoded.manifest : "it is not canonical JSON";
  } catch (error) {
    return messageOf(error);
  }
}

/** Undefined: it is not there. */
async function readAtMost(
  blobs: Blobs,
  sha256: Sha256,
  bytesMax: number,
): Promise<Uint8Array | "too large" | undefined> {
  const size = await blobs.sizeOf(sha256);
  return size !== undefined && size > bytesMax ? "too large" : blobs.read(sha256);
}

async function readText(blobs: Blobs, sha256: Sha256): Promise<string | undefined> {
  const bytes = await readAtMost(blobs, sha256, devloveBytesMax);
  if (bytes === "too large") return undefined;
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

function firstOf(reasons: readonly string[]): string {
  const more = reasons.length > errorsShown ? `; and ${reasons.length - errorsShown} more` : "";
  return reasons.slice(0, errorsShown).join("; ") + more;
}

/** Nothing happens to an import that has ended. */
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
  tx: Tx,
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
