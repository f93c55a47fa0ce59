// An edge with a visitor five times a second, watched by a real Prometheus that has the rules that are shipped. Everything is on loopback.

import { createServer, type Server } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { CustomerScript, domain } from "../../test/support/customer-script.ts";
import { Edge } from "../../test/support/edge.ts";
import { startPrometheus, type Prometheus } from "../../test/support/prometheus.ts";

type OriginState = "good" | "refusing" | "faltering" | "gone";

const rules = join(import.meta.dirname, "../../packaging/monitoring/accel.rules.yml");
const everyMs = 200;

export type WatchedOptions = {
  /** One that was prepared; whoever made it ends it. */
  readonly edge?: Edge;
  /** Further settings of the agent. */
  readonly settings?: (edge: Edge) => Readonly<Record<string, unknown>>;
  /** A command that runs the agent in its own place. */
  readonly prefix?: (edge: Edge) => readonly string[];
  /** The same for central. */
  readonly centralPrefix?: (edge: Edge) => readonly string[];
};

export class WatchedEdge implements AsyncDisposable {
  readonly edge: Edge;
  readonly origin: TestOrigin;
  readonly siteId: number;
  readonly #prometheus: Prometheus;
  readonly #stack: AsyncDisposableStack;

  private constructor(
    stack: AsyncDisposableStack,
    parts: { edge: Edge; prometheus: Prometheus; origin: TestOrigin; siteId: number },
  ) {
    this.#stack = stack;
    this.edge = parts.edge;
    this.#prometheus = parts.prometheus;
    this.origin = parts.origin;
    this.siteId = parts.siteId;
  }

  static async open({
    edge: prepared,
    settings,
    prefix,
    centralPrefix,
  }: WatchedOptions = {}): Promise<WatchedEdge> {
    await using stack = new AsyncDisposableStack();
    const origin = stack.use(await TestOrigin.start());
    const edge = prepared ?? stack.use(await Edge.prepare());
    await edge.startCentral(undefined, centralPrefix?.(edge));
    const script = new CustomerScript(edge, origin.url, "alerts");
    await script.enrol();
    if (settings !== undefined) edge.changeAgentSettings(settings(edge));
    await edge.startAgent(undefined, prefix?.(edge));
    for (const { run: step } of script.steps().slice(0, 2)) await step();
    const { body } = await edge.api.get("/metrics-conf/by-deployment-tag/eu/");
    const { metrics_config: jobs } = body as { metrics_config: readonly object[] };
    const central = {
      job_name: "accel-central",
      static_configs: [{ targets: [`127.0.0.1:${edge.ports.central}`] }],
    };
    const prometheus = stack.use(await startPrometheus([...jobs, central], [rules]));
    const isAsked = async (): Promise<boolean> =>
      prometheus.query("up").then(
        () => true,
        () => false,
      );
    if (!(await comesAbout(isAsked, 60_000))) throw new Error("Prometheus does not answer");
    const visiting = new AbortController();
    const visit = async (): Promise<void> => {
      for (let no = 0; !visiting.signal.aborted; no++) {
        await edge.visit(`/private?n=${no}`, { host: domain }).catch(() => undefined);
        await sleep(everyMs);
      }
    };
    const visits = visit();
    stack.defer(async () => {
      visiting.abort();
      await visits;
    });
    return new WatchedEdge(stack.move(), { edge, prometheus, origin, siteId: script.siteId });
  }

  /**
   * The warnings that the agent and central have told Prometheus, by code; of the severities of a pattern. One counts for ten seconds, for on a busy machine
   * a scrape may fail, and the series ends then.
   */
  async codes(severities = ".+"): Promise<readonly string[]> {
    const told = `{__name__=~"accel_(agent|central)_warning", severity=~"${severities}"}`;
    return labelsOf(await this.#prometheus.query(`max_over_time(${told}[10s]) > 0`), "code");
  }

  /** The alerts in these states, by name; `code`: those of that warning alone. */
  async alerts(states: string, code?: string): Promise<readonly string[]> {
    const of = code === undefined ? "" : `, code="${code}"`;
    const query = `ALERTS{alertstate=~"${states}"${of}}`;
    return labelsOf(await this.#prometheus.query(query), "alertname");
  }

  /** Every alert that has fired, each by name and the code of its warning. */
  async haveFired(): Promise<readonly string[]> {
    const query = `group by (alertname, code) (max_over_time(ALERTS{alertstate="firing"}[1d]))`;
    const result = await this.#prometheus.query(query);
    const [names, codes] = [labelsOf(result, "alertname"), labelsOf(result, "code")];
    return names.map((name, at) => `${name} ${codes[at]}`.trimEnd()).toSorted();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack[Symbol.asyncDispose]();
  }
}

/** Resolves when it is so. False: it was not within the time. */
export async function comesAbout(isSo: () => Promise<boolean>, withinMs: number): Promise<boolean> {
  const end = performance.now() + withinMs;
  while (!(await isSo())) {
    if (performance.now() > end) return false;
    await sleep(500);
  }
  return true;
}

function labelsOf(result: unknown, name: string): readonly string[] {
  return (result as readonly { metric: Record<string, string> }[]).map(
    ({ metric }) => metric[name] ?? "",
  );
}

/** Of an origin that falters, every fourth answer is an error: fewer than make a failing origin. */
const falteringEvery = 4;

/** An origin that can be gone, refuse or falter, and comes back at its port. */
export class TestOrigin implements AsyncDisposable {
  #server: Server | undefined;
  #state: OriginState = "good";
  #port = 0;
  #answers = 0;

  static async start(): Promise<TestOrigin> {
    const origin = new TestOrigin();
    await origin.#listen();
    return origin;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async become(state: OriginState): Promise<void> {
    this.#state = state;
    if (state === "gone") await this.#close();
    else if (this.#server === undefined) await this.#listen();
  }

  async #listen(): Promise<void> {
    const server = createServer((_, out) => {
      const fails =
        this.#state === "refusing" ||
        (this.#state === "faltering" && this.#answers++ % falteringEvery === 0);
      out.writeHead(fails ? 503 : 200, { "cache-control": "no-store" }).end("an answer");
    });
    server.listen(this.#port, "127.0.0.1");
    await once(server, "listening");
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  async #close(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close();
  }
}
