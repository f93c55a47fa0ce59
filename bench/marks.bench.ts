// How fast a mark at central is in force at the edge while a set of 1,000,000 ranges is; how fast ten thousand are, what central's loop notices of them,
// and that a hundred agents end with one set. Real central and real agent on loopback; the hundred are the real link and set store in this process.

import {
  createReadStream,
  createWriteStream,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { finished } from "node:stream/promises";
import { callControl } from "../src/base/control-socket.ts";
import { Edge } from "../test/support/edge.ts";
import { startOrigin } from "../test/support/origin.ts";
import { until } from "../test/support/until.ts";
import { Figures, percentile } from "./support/figures.ts";
import { startLightAgent, type LightAgent } from "./support/light-agent.ts";

const ranges = 1_000_000;
const marks = 200;
const burst = 10_000;
const burstAtOnce = 32;
const agents = 100;
const bigDomain = "big.example.com";
const fleetDomain = "fleet.example.com";
const probe = pathToFileURL(join(import.meta.dirname, "support/main-probe.ts")).href;

export async function run(say: (line: string) => void): Promise<void> {
  const figures = new Figures(say);
  const dir = mkdtempSync(join(tmpdir(), "accel-marks-"));
  try {
    await using origin = await startOrigin();
    await using rig = await Rig.open(dir, origin.url);
    await rig.importRanges(figures);
    await rig.markOneByOne(figures);
    await rig.markTenThousand(figures);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
  const load = loadavg().map((processes) => processes.toFixed(1));
  say(`load of the host over 1, 5 and 15 minutes: ${load.join(", ")}`);
  say(figures.missed.length === 0 ? "every limit met" : `missed: ${figures.missed.join("; ")}`);
}

type Site = { readonly id: number; readonly name16: string; readonly secret16: string };
type SetFacts = { readonly count: number; readonly digest: string };

class Rig implements AsyncDisposable {
  readonly #edge: Edge;
  readonly #dir: string;
  readonly #stack: AsyncDisposableStack;
  readonly #sites: readonly Site[];

  private constructor(
    edge: Edge,
    dir: string,
    sites: readonly Site[],
    stack: AsyncDisposableStack,
  ) {
    this.#edge = edge;
    this.#dir = dir;
    this.#sites = sites;
    this.#stack = stack;
  }

  static async open(dir: string, originUrl: string): Promise<Rig> {
    await using stack = new AsyncDisposableStack();
    const edge = stack.use(await Edge.prepare());
    process.env["MAIN_PROBE_FILE"] = join(dir, "central.loop");
    process.env["NODE_OPTIONS"] = `--import ${probe}`;
    await edge.startCentral();
    delete process.env["NODE_OPTIONS"];
    const { api } = edge;
    const trial = await api.post("/trial/", { username: "bench", email: "bench@example.com" });
    api.token = (trial.body as { token: string }).token;
    const sites: Site[] = [];
    for (let no = 0; no <= agents; no++)
      sites.push((await api.post("/deployment-site/", { tags: "fleet" })).body as Site);
    const [own] = sites;
    if (own === undefined) throw new Error("no site");
    edge.writeAgentSettings(own);
    await edge.startAgent();
    await serve(edge, bigDomain, { deployment_site_id: own.id }, own.id, originUrl);
    await serve(
      edge,
      fleetDomain,
      { link_to_deployment_sites_with_tags: "fleet" },
      own.id,
      originUrl,
    );
    return new Rig(edge, dir, sites.slice(1), stack.move());
  }

  /** As the operator does it. */
  async importRanges(figures: Figures): Promise<void> {
    const file = join(this.#dir, "list.txt");
    const list = createWriteStream(file);
    for (let no = 0; no < ranges; no++) list.write(`${addressOf(no)}\n`);
    list.end();
    await finished(list);
    const parameters = { domain: bigDomain, set: "bad", bot: "list" };
    const socket = join(this.#edge.dir, "central", "control.sock");
    this.#loopSince();
    const began = performance.now();
    for await (const _ of callControl(
      socket,
      "bots-import",
      parameters,
      AbortSignal.timeout(240_000),
      { upload: createReadStream(file) },
    ));
    figures.head(`${ranges.toLocaleString("en")} ranges by the operator's import`);
    figures.add("imported at central in", (performance.now() - began) / 1_000, "s");
    const loop = this.#loopSince();
    figures.add("central's loop meanwhile, p99", percentile(loop, 0.99), "ms", { most: 50 });
    const isThere = async (): Promise<boolean> =>
      (await this.#setAtEdge(bigDomain))?.count === ranges;
    await until("the imported set at the edge", isThere, 120_000);
    figures.add("in agent.db, after the import began", (performance.now() - began) / 1_000, "s");
    const isBlocked = async (): Promise<boolean> => (await this.#visit(addressOf(0))) === 403;
    await until("the imported set in force", isBlocked, 120_000);
    figures.add("in force, after the import began", (performance.now() - began) / 1_000, "s");
    const resync = this.#loopSince();
    figures.add("central's loop meanwhile, p99", percentile(resync, 0.99), "ms", { most: 50 });
  }

  async markOneByOne(figures: Figures): Promise<void> {
    const took: number[] = [];
    const answered: number[] = [];
    for (let no = 0; no < marks; no++) {
      const address = `198.18.${no >> 8}.${no & 255}`;
      const began = performance.now();
      await this.#mark(address, "probe", bigDomain);
      answered.push(performance.now() - began);
      while ((await this.#visit(address)) !== 403) {
        if (performance.now() - began > 30_000) throw new Error(`${address} is not blocked`);
      }
      took.push(performance.now() - began);
    }
    figures.head(`${marks} marks, one by one, from the call to central to the 403 at the edge`);
    figures.add("p50", percentile(took, 0.5), "ms");
    figures.add("p99", percentile(took, 0.99), "ms", { most: 250 });
    figures.add("of which central's answer, p50", percentile(answered, 0.5), "ms");
  }

  async markTenThousand(figures: Figures): Promise<void> {
    for (const [no, site] of this.#sites.entries()) {
      const dir = join(this.#dir, `agent-${no}`);
      mkdirSync(dir);
      const centralUrl = `http://127.0.0.1:${this.#edge.ports.central}`;
      this.#light.push(this.#stack.use(startLightAgent({ centralUrl, dir, ...site })));
    }
    await this.#mark("192.0.2.1", "first", fleetDomain);
    await until("every agent has the set", () => this.#converged(1), 60_000);
    this.#loopSince();
    const began = performance.now();
    let next = 0;
    const customer = async (): Promise<void> => {
      for (let no = next++; no < burst; no = next++)
        await this.#mark(addressOf(no * 7), `bot-${no % 100}`, fleetDomain);
    };
    await Promise.all(Array.from({ length: burstAtOnce }, customer));
    const answeredMs = performance.now() - began;
    const loop = this.#loopSince();
    await until("one set at all agents", () => this.#converged(burst + 1), 120_000);
    const isBlocked = async (): Promise<boolean> =>
      (await this.#visit(addressOf((burst - 1) * 7), fleetDomain)) === 403;
    await until("the last mark is in force", isBlocked, 30_000);
    const doneMs = performance.now() - began;
    figures.head(
      `a burst of ${burst.toLocaleString("en")} marks, ${agents} agents beside the real one`,
    );
    figures.add("answered by central in", answeredMs / 1_000, "s");
    figures.add("right set at every agent, after the last answer", doneMs - answeredMs, "ms");
    figures.add("central's loop meanwhile, p99", percentile(loop, 0.99), "ms", { most: 50 });
    figures.add("central's loop meanwhile, most", Math.max(...loop), "ms");
    figures.add("entries in each journal", await this.#head(), "");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }

  readonly #light: LightAgent[] = [];
  #probed = 0;

  /** Lateness of central's loop since the last call. */
  #loopSince(): readonly number[] {
    const lines = readFileSync(join(this.#dir, "central.loop"), "utf8").split("\n").slice(0, -1);
    const since = lines.slice(this.#probed).map(Number);
    this.#probed = lines.length;
    return since;
  }

  async #mark(address: string, bot: string, domain: string): Promise<void> {
    const place = { attach_to_bot: bot, attach_to_domain: domain };
    const { status, body } = await this.#edge.api.post(`/mark-as-bad-bot/${address}/`, place);
    if (status !== 200) throw new Error(`mark: ${status} ${JSON.stringify(body)}`);
  }

  async #visit(address: string, host = bigDomain): Promise<number> {
    const headers = { "x-forwarded-for": address };
    return (await this.#edge.visit("/private", { host, headers })).status;
  }

  async #converged(count: number): Promise<boolean> {
    const own = await this.#setAtEdge(fleetDomain);
    if (own?.count !== count) return false;
    return this.#light.every((agent) => agent.set(fleetDomain, "bad")?.digest === own.digest);
  }

  async #setAtEdge(host: string): Promise<SetFacts | undefined> {
    const status = (await this.#status("agent")) as {
      readonly parts: { readonly sets: readonly (SetFacts & { readonly host: string })[] };
    };
    return status.parts.sets.find((set) => set.host === host);
  }

  async #head(): Promise<number> {
    const { deployment_sites: sites } = (await this.#status("central")) as {
      readonly deployment_sites: readonly { readonly journal_head: number }[];
    };
    return Math.max(...sites.map(({ journal_head: head }) => head));
  }

  async #status(program: "agent" | "central"): Promise<unknown> {
    const socket = join(this.#edge.dir, program, "control.sock");
    for await (const answer of callControl(socket, "status", {}, AbortSignal.timeout(30_000)))
      return answer;
    return undefined;
  }
}

/** No two of them in one network of a prefix longer than 24 bits of those beside it: a list as it is kept, without order. */
function addressOf(no: number): string {
  const spread = (no * 40_503) % 2 ** 24;
  return `${20 + (no % 7)}.${spread >>> 16}.${(spread >>> 8) & 255}.${spread & 255}`;
}

async function serve(
  { api }: Edge,
  domain: string,
  link: Readonly<Record<string, unknown>>,
  siteId: number,
  originUrl: string,
): Promise<void> {
  await api.post("/domain/", { name: domain, ...link });
  const content = JSON.stringify({ domains: { [domain]: { backend: { urls: [originUrl] } } } });
  await api.post(`/${domain}/devlove/first/`, { schema: "devlove/1", content });
  const versions = (await api.get(`/active-viewset/${domain}/`)).body as readonly { id: number }[];
  const place = `/active-viewset/${domain}/${versions[0]?.id}/`;
  await api.put(place, {});
  const isApplied = async (): Promise<boolean> => {
    const { body } = await api.get(place);
    return JSON.stringify(body).includes('"applied"') && siteId > 0;
  };
  await until(`${domain} is served`, isApplied, 60_000);
}
