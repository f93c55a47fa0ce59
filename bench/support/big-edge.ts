// The real agent with its central and an index of a million entries: filled once, saved, and put back before each measurement that deletes it.

import { execFileSync } from "node:child_process";
import { copyFileSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { callControl } from "../../src/base/control-socket.ts";
import type { IndexFacts } from "../../src/agent/cache/index/opening.ts";
import { openAgentDb, indexMemory } from "../../src/agent/link/agent-db.ts";
import { browser, Edge } from "../../test/support/edge.ts";
import { until } from "../../test/support/until.ts";
import { fillIndex } from "./big-index.ts";
import { siteDomains, type SitePaths } from "./site-paths.ts";

/** The agent as it is shipped: what a start takes is not the reading of sources. */
const root = join(import.meta.dirname, "../..");
const built = join(root, "dist/main.js");
const diskMax = "16GiB";
const ticksPerSecond = 100; // Of Linux's /proc/PID/stat.
const pageBytes = 4_096;
const indexFiles = ["index.db", "index.db-wal", "index.db-shm"];

/** `cpuS` of the agent with all its threads, without the matcher. */
export type Usage = { readonly cpuS: number; readonly rssBytes: number };

export type LocalClear = {
  readonly matched: number;
  readonly removed: number;
  readonly invisible_ms: number;
  readonly gone_ms: number;
  readonly widened: boolean;
};

export class BigEdge implements AsyncDisposable {
  readonly edge: Edge;
  readonly stateDir: string;
  #saved: Pick<IndexFacts, "opening" | "clearNo"> = { opening: null, clearNo: 0 };

  private constructor(edge: Edge) {
    this.edge = edge;
    this.stateDir = join(edge.dir, "agent");
  }

  /** Two of the domains are served; the agent has run once and stopped. */
  static async open(originUrl: string): Promise<BigEdge> {
    execFileSync("npm", ["run", "build", "--silent"], { cwd: root, stdio: "inherit" });
    await using stack = new AsyncDisposableStack();
    const edge = stack.use(await Edge.prepare());
    await edge.startCentral();
    const { api } = edge;
    const trial = await api.post("/trial/", { username: "bench", email: "bench@example.com" });
    api.token = (trial.body as { token: string }).token;
    const { body } = await api.post("/deployment-site/", { tags: "bench" });
    const site = body as { id: number; name16: string; secret16: string };
    edge.writeAgentSettings(site, { cache: { disk_max: diskMax } });
    const big = new BigEdge(edge);
    await edge.startAgent(built);
    for (const domain of siteDomains.slice(0, 2)) await big.#serve(domain, site.id, originUrl);
    await big.stop();
    stack.move();
    return big;
  }

  /** Seconds it took to write the entries; the files are saved. */
  async writeEntries(paths: SitePaths, count: number): Promise<number> {
    using db = openAgentDb(join(this.stateDir, "agent.db"));
    const memory = indexMemory(db);
    const tookS = await fillIndex(this.stateDir, memory, paths, count);
    const { opening, clearNo } = memory.read();
    this.#saved = { opening, clearNo };
    copyFileSync(this.#file("index.db"), this.#file("saved.db"));
    return tookS;
  }

  /** While no agent runs. */
  restore(): void {
    for (const name of indexFiles) rmSync(this.#file(name), { force: true });
    copyFileSync(this.#file("saved.db"), this.#file("index.db"));
    using db = openAgentDb(join(this.stateDir, "agent.db"));
    indexMemory(db).note(this.#saved);
  }

  /** Milliseconds from the start of the process to the first answer from the cache. */
  async start(path: string, host: string): Promise<number> {
    const began = performance.now();
    const starting = this.edge.startAgent(built);
    const isHit = async (): Promise<boolean> => {
      const { headers } = await this.edge.visit(path, { host });
      return String(headers["cache-status"]).includes("hit");
    };
    await until("an answer from the cache", () => isHit().catch(() => false), 30_000);
    const tookMs = performance.now() - began;
    await starting;
    return tookMs;
  }

  async stop(): Promise<void> {
    await this.edge.agent.terminate();
  }

  /** Given on the host; resolves when it is gone. */
  async clear(domain: string, patterns: readonly string[]): Promise<LocalClear> {
    const socket = join(this.stateDir, "control.sock");
    const signal = AbortSignal.timeout(120_000);
    for await (const answer of callControl(socket, "cache-clear", { domain, patterns }, signal))
      return answer as LocalClear; // What the agent answers this command with.
    throw new Error("the agent did not answer");
  }

  get visitors(): { readonly origin: string; readonly userAgent: string } {
    return { origin: `http://127.0.0.1:${this.edge.ports.visitors}`, userAgent: browser };
  }

  get indexBytes(): number {
    return indexFiles
      .filter((name) => readdirSync(join(this.stateDir, "cache")).includes(name))
      .reduce((sum, name) => sum + statSync(this.#file(name)).size, 0);
  }

  usage(): Usage {
    return usageOf(this.edge.agent.pid);
  }

  matcherUsage(): Usage {
    const { pid } = this.edge.agent;
    const children = readdirSync(`/proc/${pid}/task`).flatMap((task) =>
      readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").trim().split(" "),
    );
    return usageOf(Number(children.find((child) => child !== "") ?? pid));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.edge[Symbol.asyncDispose]();
  }

  #file(name: string): string {
    return join(this.stateDir, "cache", name);
  }

  async #serve(domain: string, siteId: number, originUrl: string): Promise<void> {
    const { api } = this.edge;
    await api.post("/domain/", { name: domain, deployment_site_id: siteId });
    const content = JSON.stringify({ domains: { [domain]: { backend: { urls: [originUrl] } } } });
    await api.post(`/${domain}/devlove/first/`, { schema: "devlove/1", content });
    const versions = (await api.get(`/active-viewset/${domain}/`)).body as readonly {
      id: number;
    }[];
    const place = `/active-viewset/${domain}/${versions[0]?.id}/`;
    await api.put(place, {});
    const isApplied = async (): Promise<boolean> =>
      ((await api.get(place)).body as { activation?: string }).activation === "applied";
    await until(`${domain} is served`, isApplied, 60_000);
  }
}

function usageOf(pid: number): Usage {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // After the command's name in parentheses: utime and stime are fields 14 and 15 of all, rss is 24.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const cpuS = (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
  return { cpuS, rssBytes: Number(fields[21]) * pageBytes };
}
