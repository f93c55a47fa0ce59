// How long it takes from a fault to its warning, to an alert that fires in a real Prometheus with the rules that are shipped, and to its end. First nothing is
// wrong for some minutes: nothing may fire. Everything is on loopback, and ends by itself.
//
//   npm run bench -- alerts [--calm MINUTES]

import { createServer, type Server } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { CustomerScript, domain } from "../test/support/customer-script.ts";
import { Edge } from "../test/support/edge.ts";
import { startPrometheus, type Prometheus } from "../test/support/prometheus.ts";
import { Figures } from "./support/figures.ts";

const rules = join(import.meta.dirname, "../packaging/monitoring/accel.rules.yml");
const everyMs = 200;
const withinMs = 15 * 60_000;

export async function run(say: (line: string) => void, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: { calm: { type: "string", default: "3" } },
  });
  const figures = new Figures(say);
  await using scene = await Scene.open();

  figures.head(`${values.calm} minutes of normal work`);
  await sleep(Number(values.calm) * 60_000);
  figures.add("alerts", (await scene.alerts("pending|firing")).length, "", { most: 0 });
  figures.add("warnings of severity warning or error", (await scene.graveWarnings()).length, "", {
    most: 0,
  });

  for (const fault of [
    "the origin is gone",
    "the origin answers 503",
    "central is gone",
  ] as const) {
    figures.head(fault);
    const began = performance.now();
    const since = (): number => (performance.now() - began) / 1_000;
    await scene.breakIt(fault);
    const alert = fault === "central is gone" ? "AccelAgentNotConnected" : "AccelOriginFailing";
    const code = fault === "central is gone" ? "central_unreachable" : "origin_failing";
    await scene.until(async () => (await scene.codes()).includes(code));
    figures.add("warned after", since(), "s");
    await scene.until(async () => (await scene.alerts("firing")).includes(alert));
    figures.add(`${alert} fires after`, since(), "s");
    const mended = performance.now();
    await scene.mend();
    await scene.until(async () => !(await scene.codes()).includes(code));
    figures.add("mended: the warning ends after", (performance.now() - mended) / 1_000, "s");
    await scene.until(async () => (await scene.alerts("firing")).length === 0);
    figures.add("mended: no alert fires after", (performance.now() - mended) / 1_000, "s");
  }
  if (figures.missed.length > 0) throw new Error(`missed: ${figures.missed.join(", ")}`);
}

type Fault = "the origin is gone" | "the origin answers 503" | "central is gone";

class Scene implements AsyncDisposable {
  readonly #stack: AsyncDisposableStack;
  readonly #edge: Edge;
  readonly #prometheus: Prometheus;
  readonly #origin: TestOrigin;

  private constructor(
    stack: AsyncDisposableStack,
    parts: { edge: Edge; prometheus: Prometheus; origin: TestOrigin },
  ) {
    this.#stack = stack;
    this.#edge = parts.edge;
    this.#prometheus = parts.prometheus;
    this.#origin = parts.origin;
  }

  static async open(): Promise<Scene> {
    await using stack = new AsyncDisposableStack();
    const origin = stack.use(await TestOrigin.start());
    const edge = stack.use(await Edge.prepare());
    await edge.startCentral();
    const script = new CustomerScript(edge, origin.url, "alerts");
    await script.enrol();
    await edge.startAgent();
    for (const { run: step } of script.steps().slice(0, 2)) await step();
    const { body } = await edge.api.get("/metrics-conf/by-deployment-tag/eu/");
    const { metrics_config: jobs } = body as { metrics_config: readonly object[] };
    const central = {
      job_name: "accel-central",
      static_configs: [{ targets: [`127.0.0.1:${edge.ports.central}`] }],
    };
    const prometheus = stack.use(await startPrometheus([...jobs, central], [rules]));
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
    return new Scene(stack.move(), { edge, prometheus, origin });
  }

  /** The warnings that the agent has told Prometheus, by code. */
  async codes(): Promise<readonly string[]> {
    const result = await this.#prometheus.query("accel_agent_warning > 0");
    return labelsOf(result, "code");
  }

  async alerts(states: string): Promise<readonly string[]> {
    return labelsOf(await this.#prometheus.query(`ALERTS{alertstate=~"${states}"}`), "alertname");
  }

  async graveWarnings(): Promise<readonly string[]> {
    return labelsOf(
      await this.#prometheus.query('accel_agent_warning{severity=~"warning|error"} > 0'),
      "code",
    );
  }

  async breakIt(fault: Fault): Promise<void> {
    if (fault === "central is gone") await this.#edge.central.kill();
    else await this.#origin.become(fault === "the origin is gone" ? "gone" : "refusing");
  }

  async mend(): Promise<void> {
    await this.#origin.become("good");
    if (!(await this.#centralAnswers())) await this.#edge.central.restart();
  }

  async until(isSo: () => Promise<boolean>): Promise<void> {
    const end = performance.now() + withinMs;
    while (!(await isSo())) {
      if (performance.now() > end) throw new Error("it did not come about within 15 minutes");
      await sleep(500);
    }
  }

  async #centralAnswers(): Promise<boolean> {
    const url = `http://127.0.0.1:${this.#edge.ports.central}/healthz`;
    return fetch(url).then(
      () => true,
      () => false,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack[Symbol.asyncDispose]();
  }
}

function labelsOf(result: unknown, name: string): readonly string[] {
  return (result as readonly { metric: Record<string, string> }[]).map(
    ({ metric }) => metric[name] ?? "",
  );
}

/** An origin that can be gone or refuse, and comes back at its port. */
class TestOrigin implements AsyncDisposable {
  #server: Server | undefined;
  #state: "good" | "refusing" | "gone" = "good";
  #port = 0;

  static async start(): Promise<TestOrigin> {
    const origin = new TestOrigin();
    await origin.#listen();
    return origin;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async become(state: "good" | "refusing" | "gone"): Promise<void> {
    this.#state = state;
    if (state === "gone") await this.#close();
    else if (this.#server === undefined) await this.#listen();
  }

  async #listen(): Promise<void> {
    const server = createServer((_, out) => {
      const status = this.#state === "good" ? 200 : 503;
      out.writeHead(status, { "cache-control": "no-store" }).end("an answer");
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
