// kill -9 of a real agent while visitors fill its cache and a customer clears it: each answer tells how new it is, so that one that should have been
// cleared gives itself away.
//
// The site has sections. To change one, its generation is raised at the origin, then everything of it is cleared, through central or on the host; once
// that is acknowledged, no answer to a request that starts later may be of an older generation, whatever is killed meanwhile. Some clears are soft: then
// half of the pages may be served from before for as long as they say, and the answer says that it is stale. Some of those change nothing, so that the origin
// confirms what is stored.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { callControl } from "../../src/base/control-socket.ts";
import { exactWord } from "../../src/core/patterns/exact-word.ts";
import { CustomerScript, domain } from "./customer-script.ts";
import { Edge } from "./edge.ts";
import { until } from "./until.ts";

const sections = 4;
const pagesEach = 25;
const visitors = 6;
/** Some bodies stand in the index, some are files, some are streamed. */
const bodyBytes = [300, 20_000, 60_000, 300_000];
/** Before each kill, and after each change of a section. */
const pauseMsMax = 1_500;
const restMsMax = 600;
/** How long a page with an odd number may be served stale, and the second that times are rounded by. */
const staleS = 2;
const staleMsMax = (staleS + 1) * 1_000;

type Acknowledged = {
  readonly generation: number;
  readonly isSoft: boolean;
  readonly atMs: number;
};
/** `cleared`: what was acknowledged, in order. */
type Section = { generation: number; readonly cleared: Acknowledged[] };
export type ClearKillCounts = {
  kills: number;
  clears: number;
  /** Those of them that were soft. */
  softClears: number;
  requests: number;
  hits: number;
  /** Answers from before a soft clear. */
  stale: number;
  /** Nobody answered: the agent was dead. */
  unanswered: number;
  readonly violations: string[];
};

export async function runClearKill(
  killsWanted: number,
  onKill: (counts: ClearKillCounts) => void = () => undefined,
): Promise<ClearKillCounts> {
  await using stack = new AsyncDisposableStack();
  const site: Section[] = Array.from({ length: sections }, () => ({
    generation: 1,
    cleared: [],
  }));
  const origin = stack.use(await startVersionedOrigin(site));
  const edge = stack.use(await Edge.prepare());
  await edge.startCentral();
  const script = new CustomerScript(edge, origin.url, "clear-kill");
  await script.enrol();
  await edge.startAgent();
  for (const { run } of script.steps().slice(0, 2)) await run();

  const load = new Load(edge, site);
  const done = new AbortController();
  const running = [
    ...Array.from({ length: visitors }, () => load.visit(done.signal)),
    ...site.map((section, no) => load.change(section, no, done.signal)),
  ];
  const { counts } = load;
  try {
    while (counts.kills < killsWanted) {
      await sleep(Math.random() * pauseMsMax);
      await edge.agent.kill();
      counts.kills++;
      await edge.agent.restart();
      await load.inPeace(() => load.checkIndex());
      onKill(counts);
    }
  } finally {
    done.abort();
    await Promise.all(running);
  }
  return counts;
}

class Load {
  readonly counts: ClearKillCounts = {
    kills: 0,
    clears: 0,
    softClears: 0,
    requests: 0,
    hits: 0,
    stale: 0,
    unanswered: 0,
    violations: [],
  };
  readonly #edge: Edge;
  readonly #site: readonly Section[];
  /** While it is pending, no visitor begins. */
  #gate: Promise<void> = Promise.resolve();
  #changes = 0;

  constructor(edge: Edge, site: readonly Section[]) {
    this.#edge = edge;
    this.#site = site;
  }

  async visit(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#gate;
      const no = Math.floor(Math.random() * sections);
      const page = Math.floor(Math.random() * pagesEach);
      const cleared = [...(this.#site[no]?.cleared ?? [])];
      const startedMs = performance.now();
      const path = `/s${no}/p${page}`;
      try {
        const { status, headers, body } = await this.#edge.visit(path, { host: domain });
        this.#judge(path, { cleared, startedMs }, { status, headers, body });
      } catch {
        this.counts.unanswered++;
        await sleep(50);
      }
    }
  }

  #judge(
    path: string,
    { cleared, startedMs }: { cleared: readonly Acknowledged[]; startedMs: number },
    answer: Awaited<ReturnType<Edge["visit"]>>,
  ): void {
    const { counts } = this;
    counts.requests++;
    const isHit = String(answer.headers["cache-status"]).includes("hit");
    if (isHit) counts.hits++;
    if (answer.status !== 200) {
      counts.violations.push(`${path}: ${answer.status}`);
      return;
    }
    const [of, generation] = answer.body.subarray(0, 100).toString().split(" ");
    if (of !== path) counts.violations.push(`${path}: answered with ${of}`);
    if (answer.body.length !== sizeOf(path))
      counts.violations.push(`${path}: ${answer.body.length} bytes of ${sizeOf(path)}`);
    const newer = cleared.filter((clear) => clear.generation > Number(generation));
    const [first] = newer;
    if (first === undefined) return;
    const said = String(answer.headers["cache-status"]);
    const isTold = isHit && /ttl=(?:0$|-)/.test(said);
    const lateMs = startedMs - first.atMs;
    const isAllowed = newer.every(({ isSoft }) => isSoft) && mayBeStale(path) && isTold;
    if (isAllowed && lateMs <= staleMsMax) counts.stale++;
    else
      counts.violations.push(
        `${path}: generation ${generation} (${said}), ${first.generation} was cleared for ${first.isSoft ? "softly " : ""}${lateMs.toFixed(0)} ms before`,
      );
  }

  /** Of one section, one change after the other: every other through central. */
  async change(section: Section, no: number, signal: AbortSignal): Promise<void> {
    const pattern = `url:${exactWord(`/s${no}/`)}*`;
    while (!signal.aborted) {
      const change = ++this.#changes;
      const isSoft = change % 3 !== 0;
      if (change % 7 !== 0 || !isSoft) section.generation++;
      const { generation } = section;
      const isCleared =
        change % 2 === 0
          ? this.#byCentral(pattern, isSoft, signal)
          : this.#onTheHost(pattern, isSoft);
      if (!(await isCleared)) continue;
      section.cleared.push({ generation, isSoft, atMs: performance.now() });
      this.counts.clears++;
      if (isSoft) this.counts.softClears++;
      await sleep(Math.random() * restMsMax); // So that there is something to clear.
    }
  }

  async #byCentral(pattern: string, soft: boolean, signal: AbortSignal): Promise<boolean> {
    const { api } = this.#edge;
    const path = `/clear-accelerator-cache/${domain}/`;
    const given = await api.post(`${path}?wait=5`, { url_path_patterns: [pattern], soft });
    const { clear_id: id } = given.body as { clear_id: string };
    for (let state: unknown; state !== "applied";) {
      const { body } = await api.get(`${path}${id}/`);
      state = (body as { deployments: readonly { state: string }[] }).deployments[0]?.state;
      if (signal.aborted) return false;
      if (state !== "applied") await sleep(30);
    }
    return true;
  }

  async #onTheHost(pattern: string, soft: boolean): Promise<boolean> {
    try {
      await this.#control("cache-clear", { domain, patterns: [pattern], soft, dry_run: false });
      return true;
    } catch {
      await sleep(30); // Killed meanwhile: it promises nothing.
      return false;
    }
  }

  async #control(command: string, parameters: unknown): Promise<unknown> {
    const path = join(this.#edge.dir, "agent/control.sock");
    for await (const answer of callControl(path, command, parameters, AbortSignal.timeout(60_000)))
      return answer;
    throw new Error("no answer");
  }

  async inPeace(action: () => Promise<void>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#gate = promise;
    await action().finally(resolve);
  }

  /** Deletions of before may go on, so it may take a moment; what stays is a fault. */
  async checkIndex(): Promise<void> {
    let checked: unknown;
    await until("the index is whole", async () => {
      checked = await this.#control("cache-check", {});
      return Object(checked)["ok"] === true;
    }).catch(() => this.counts.violations.push(`the index: ${JSON.stringify(checked)}`));
  }
}

function sizeOf(path: string): number {
  return bodyBytes[Number(path.split("p")[1]) % bodyBytes.length] ?? 0;
}

function mayBeStale(path: string): boolean {
  return Number(path.split("p")[1]) % 2 === 1;
}

type VersionedOrigin = AsyncDisposable & { readonly url: string };

/** Each answer begins with its path and the generation that its section had when it was asked; the rest comes a little later. */
async function startVersionedOrigin(site: readonly Section[]): Promise<VersionedOrigin> {
  const server = createServer((incoming, response) => {
    const path = incoming.url ?? "/";
    const generation = site[Number(/^\/s(\d)/.exec(path)?.[1])]?.generation ?? 0;
    const body = `${path} ${generation} `.padEnd(sizeOf(path), ".");
    const etag = `"${generation}"`;
    const lifetime = "public, max-age=3600";
    const fields = {
      "content-type": "text/html",
      "cache-control": mayBeStale(path)
        ? `${lifetime}, stale-while-revalidate=${staleS}`
        : lifetime,
      etag,
    };
    const isKnown = incoming.headers["if-none-match"] === etag;
    response.on("error", () => undefined);
    setTimeout(() => {
      if (isKnown) return response.writeHead(304, fields).end();
      response.writeHead(200, { ...fields, "content-length": body.length });
      return response.end(body);
    }, Math.random() * 30);
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      server.closeAllConnections();
      await closed.promise;
    },
  };
}
