// An edge whose site lies on the host, and its imports through the customer API: started, waited for with their progress, and compared with the
// directory file by file from what central has on its disk.

import { createHash } from "node:crypto";
import { createReadStream, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { pipeline } from "node:stream/promises";
import { setTimeout as pause } from "node:timers/promises";
import { openSqlite } from "../../src/base/sqlite.ts";
import { blobPath } from "../../src/core/blob-path.ts";
import { parseSha256, type Sha256 } from "../../src/core/ids.ts";
import type { ImportProgress } from "../../src/wire/customer/viewset.ts";
import { decodeManifest, type Manifest } from "../../src/wire/manifest.ts";
import { CustomerScript, domain } from "./customer-script.ts";
import { Edge } from "./edge.ts";
import { until } from "./until.ts";

export type ImportEnd = ImportProgress & { readonly seen: readonly ImportProgress[] };

export class ImportEdge implements AsyncDisposable {
  readonly edge: Edge;
  readonly views: string;
  readonly devloveFile: string;
  readonly siteId: number;

  private constructor(edge: Edge, views: string, devloveFile: string, siteId: number) {
    this.edge = edge;
    this.views = views;
    this.devloveFile = devloveFile;
    this.siteId = siteId;
  }

  /** Central and agent run, the domain is linked; `views` undefined: an empty directory of its own. */
  static async open(views?: string): Promise<ImportEdge> {
    await using stack = new AsyncDisposableStack();
    const edge = stack.use(await Edge.prepare());
    await edge.startCentral();
    const script = new CustomerScript(edge, "http://127.0.0.1:9", "import");
    await script.enrol();
    const root = views ?? join(edge.dir, "views");
    const devloveFile = join(edge.dir, "devlove.json");
    mkdirSync(root, { recursive: true });
    writeFileSync(devloveFile, JSON.stringify({ domains: { [domain]: {} } }));
    edge.changeAgentSettings({ sites: [{ domain, views_dir: root, devlove_file: devloveFile }] });
    await edge.startAgent();
    await script.steps()[0]?.run();
    stack.move();
    return new ImportEdge(edge, root, devloveFile, script.siteId);
  }

  path(name: string): string {
    return `/import-viewset/${domain}/${this.siteId}/${name}/`;
  }

  /** The status of the answer. */
  async start(name: string): Promise<number> {
    return (await this.edge.api.post(this.path(name), {})).status;
  }

  async state(name: string): Promise<ImportProgress> {
    // Central validates what it answers by this type.
    return (await this.edge.api.get(this.path(name))).body as ImportProgress;
  }

  /** Waits for the end of an import that was started, whatever it is. */
  async ended(name: string, deadlineMs = 180_000, askEveryMs = 0): Promise<ImportEnd> {
    const seen: ImportProgress[] = [];
    const ask = async (): Promise<ImportProgress | undefined> => {
      const state = await this.state(name);
      seen.push(state);
      if (state.status === "started") await pause(askEveryMs);
      return state.status === "started" ? undefined : state;
    };
    return { ...(await until(`the end of import ${name}`, ask, deadlineMs)), seen };
  }

  /** As it was imported: central's own record names it. */
  async manifest(viewsetId: number): Promise<Manifest> {
    const sha256 = this.#filesBlob(viewsetId);
    const text = await readFile(blobPath(this.centralBlobsDir, sha256), "utf8");
    const decoded = decodeManifest(JSON.parse(text));
    if (!decoded.ok) throw new Error(decoded.reason);
    return decoded.manifest;
  }

  #filesBlob(viewsetId: number): Sha256 {
    const path = join(this.edge.dir, "central", "central.db");
    const db = openSqlite(path, { sync: "normal", readonly: true });
    try {
      const found = db.prepare("SELECT files_blob FROM viewsets WHERE id = ?").pluck();
      const sha256 = parseSha256(found.get(viewsetId));
      if (sha256 === undefined) throw new Error(`viewset ${viewsetId} has no files`);
      return sha256;
    } finally {
      db.close();
    }
  }

  /** Paths that differ: in what they hold, at central or in the directory, or that only one of them has. */
  async differing(viewsetId: number): Promise<readonly string[]> {
    const digests = new Map(await digestsBelow(this.views));
    const differing: string[] = [];
    for (const { path, sha256 } of (await this.manifest(viewsetId)).files ?? []) {
      const stored = await sha256OfFile(blobPath(this.centralBlobsDir, sha256));
      if (stored !== sha256 || digests.get(path) !== sha256) differing.push(path);
      digests.delete(path);
    }
    return [...differing, ...digests.keys()];
  }

  get centralBlobsDir(): string {
    return join(this.edge.dir, "central", "blobs");
  }

  /** Uploaded since the agent was started. */
  async blobsSent(): Promise<number> {
    const text = await (
      await fetch(`http://127.0.0.1:${this.edge.ports.metrics}/metrics/deployment`)
    ).text();
    const line = /^accel_agent_viewset_blobs_total\{[^}]*direction="sent"[^}]*\} (\d+)/m.exec(text);
    return Number(line?.[1] ?? 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.edge[Symbol.asyncDispose]();
  }
}

export async function sha256OfFile(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}

/** By path below the root: the digest of every regular file. */
export async function digestsBelow(root: string): Promise<ReadonlyMap<string, string>> {
  const digests = new Map<string, string>();
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) {
      const path = join(entry.parentPath, entry.name);
      digests.set(relative(root, path), await sha256OfFile(path));
    }
  return digests;
}
