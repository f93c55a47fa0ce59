// The real central over a state directory, with a customer that has two domains at a deployment site each: started and ended at will, asked by the API of
// customers, and sent batches as agents send them.

import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { zstdCompressSync } from "node:zlib";
import { sleep } from "../../src/base/wait.ts";
import { analyticsShape, type Analytics } from "../../src/wire/customer/analytics.ts";
import { Edge } from "../../test/support/edge.ts";
import { connectAgent, type FakeAgent } from "../../test/support/fake-agent.ts";
import { fastRate, Sender, slowRate } from "./fill.ts";
import type { Batch } from "./traffic.ts";

type Site = { readonly id: number; readonly name16: string; readonly secret16: string };

export type Timed = { readonly tookMs: number; readonly text: string };

/** A lane of its own for each site, which the fill does not use. */
const lane = "00000000000000a2/1";

export class NumbersEdge implements AsyncDisposable {
  readonly #edge: Edge;
  readonly slow: Sender;
  readonly fast: Sender;
  readonly #sites: ReadonlyMap<number, Site>;
  readonly #agents = new Map<number, FakeAgent>();
  readonly #seqs = new Map<number, number>();

  private constructor(edge: Edge, [slow, fast]: readonly [Site, Site]) {
    this.#edge = edge;
    this.slow = new Sender(slow.id, slowDomain, 1);
    this.fast = new Sender(fast.id, fastDomain, 2);
    this.#sites = new Map([slow, fast].map((site) => [site.id, site]));
  }

  /** Makes the customer. Central is not running when this resolves. */
  static async prepare(): Promise<NumbersEdge> {
    const edge = await Edge.prepare();
    try {
      await edge.startCentral();
      const trial = await edge.api.post("/trial/", { username: "numbers" });
      edge.api.token = String(Object(trial.body).token);
      const sites = [await newSite(edge, slowDomain), await newSite(edge, fastDomain)] as const;
      await edge.central.terminate();
      return new NumbersEdge(edge, sites);
    } catch (error) {
      await edge[Symbol.asyncDispose]();
      throw error;
    }
  }

  get stateDir(): string {
    return join(this.#edge.dir, "central");
  }

  /** Of central. */
  get pid(): number {
    return this.#edge.central.pid;
  }

  get senders(): readonly [Sender, Sender] {
    return [this.slow, this.fast];
  }

  async start(): Promise<void> {
    await this.#edge.startCentral();
  }

  async stop(): Promise<void> {
    this.#agents.clear();
    await this.#edge.central.terminate();
  }

  /** Ends central and starts it with nothing of the numbers and of the logs in the memory of the kernel. */
  async startCold(): Promise<void> {
    await this.stop();
    const logs = join(this.stateDir, "logs");
    for (const path of [join(this.stateDir, "analytics.db"), `${logs}/.`])
      if (existsSync(path)) dropFromMemory(path);
    await this.start();
  }

  async ask(domain: string, query: string): Promise<Timed> {
    const { origin, token } = this.#edge.api;
    const began = performance.now();
    const answer = await fetch(`${origin}/presentation-api/v1/analytics/${domain}/?${query}`, {
      headers: { authorization: `Token ${token}` },
    });
    const text = await answer.text();
    const tookMs = performance.now() - began;
    if (!answer.ok) throw new Error(`${query}: ${answer.status} ${text}`);
    return { tookMs, text };
  }

  async numbers(domain: string, query: string): Promise<Analytics> {
    const decoded = analyticsShape.decode(JSON.parse((await this.ask(domain, query)).text));
    if (!decoded.ok) throw new Error(JSON.stringify(decoded.errors));
    return decoded.value;
  }

  /** Sends a batch as the next one of its site, and notes it in the ledger. */
  async send(sender: Sender, batch: Batch): Promise<void> {
    const firstSeq = (this.#seqs.get(sender.siteId) ?? 0) + 1;
    const lastSeq = firstSeq + batch.sent.length - 1;
    await this.#post(sender, batch, firstSeq);
    this.#seqs.set(sender.siteId, lastSeq);
    sender.ledger.add(batch);
  }

  /** Sends the newest batch once more. */
  async resend(sender: Sender, batch: Batch): Promise<void> {
    await this.#post(sender, batch, (this.#seqs.get(sender.siteId) ?? 0) - batch.sent.length + 1);
  }

  /** Sends what each domain is asked for in a second, until `stop` is aborted. */
  async sendLive(stop: AbortSignal): Promise<void> {
    for (let fromS = Date.now() / 1e3; !stop.aborted;) {
      await sleep(1_000, stop).catch(() => undefined);
      const toS = Date.now() / 1e3;
      for (const [sender, rate] of [
        [this.slow, slowRate],
        [this.fast, fastRate],
      ] as const) {
        const count = Math.min(2_000, Math.max(1, Math.round((toS - fromS) * rate)));
        await this.send(sender, sender.traffic.batch(count, fromS, toS));
      }
      fromS = toS;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#edge[Symbol.asyncDispose]();
  }

  async #post({ siteId }: Sender, { body, sent }: Batch, firstSeq: number): Promise<void> {
    const agent = await this.#agent(siteId);
    const answer = await agent.call("/request-logs", {
      method: "POST",
      headers: {
        "accel-lane": lane,
        "accel-first-seq": String(firstSeq),
        "accel-last-seq": String(firstSeq + sent.length - 1),
        "content-encoding": "zstd",
      },
      body: zstdCompressSync(body),
    });
    if (!answer.ok) throw new Error(`a batch: ${answer.status} ${await answer.text()}`);
  }

  async #agent(siteId: number): Promise<FakeAgent> {
    const known = this.#agents.get(siteId);
    if (known !== undefined) return known;
    const site = this.#sites.get(siteId);
    if (site === undefined) throw new Error(`there is no site ${siteId}`);
    const url = `http://127.0.0.1:${this.#edge.ports.central}/agent-api/v1`;
    const agent = await connectAgent(url, site.name16, site.secret16);
    this.#agents.set(siteId, agent);
    return agent;
  }
}

const slowDomain = "slow.example.com";
const fastDomain = "fast.example.com";

async function newSite(edge: Edge, name: string): Promise<Site> {
  const { id, name16, secret16 } = Object((await edge.api.post("/deployment-site/", {})).body);
  const { status } = await edge.api.post("/domain/", { name, deployment_site_id: id });
  if (status !== 201) throw new Error(`the domain was not made: ${status}`);
  return { id, name16, secret16 };
}

/** Has the kernel forget what it holds of a file, or of all files in a directory. */
function dropFromMemory(path: string): void {
  const drop = 'dd if="$1" iflag=nocache count=0 status=none';
  execFileSync("find", [path, "-type", "f", "-exec", "sh", "-c", drop, "sh", "{}", ";"]);
}
