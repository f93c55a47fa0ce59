// Agent and central as processes with everything between and below them in reach: the line, the batches, both clocks, the spool's files.

import { mkdirSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { CustomerScript } from "./customer-script.ts";
import { Edge } from "./edge.ts";
import { Ledger } from "./log-oracle-ledger.ts";
import { BatchProxy } from "./log-oracle-proxy.ts";
import { Line } from "./log-oracle-line.ts";
import { startOrigin } from "./origin.ts";
import { answers200, mainFile, Program } from "./process.ts";

export type SceneOptions = {
  /** `main.ts` of another source tree. */
  readonly agentMain?: string;
  readonly centralMain?: string;
  readonly spool?: Readonly<Record<string, unknown>>;
  readonly workers?: number;
};

/** One start of the agent. */
export type Run = {
  readonly no: number;
  /** Boot epoch of its lanes. */
  epoch: string;
  /** When it was killed. */
  killedMs: number | undefined;
  /** Something was done to its segments. */
  isDamaged: boolean;
};

export type ClockStep = { readonly sinceMs: number; readonly offsetMs: number };

const startsMax = 6;
const segmentName = /^([0-9a-f]{16})-.*\.seg$/;

export class Scene implements AsyncDisposable {
  readonly edge: Edge;
  readonly script: CustomerScript;
  readonly proxy: BatchProxy;
  readonly line: Line;
  readonly ledger = new Ledger();
  readonly runs: Run[] = [];
  /** Of other agents on copies of the state. */
  readonly clones: Run[] = [];
  /** Of the agent. */
  readonly clockSteps: ClockStep[] = [{ sinceMs: 0, offsetMs: 0 }];
  readonly #owned: AsyncDisposableStack;
  readonly #options: SceneOptions;
  #central: Program | undefined;
  #agent: Program | undefined;
  #isCentralUp = true;

  private constructor(
    parts: { edge: Edge; script: CustomerScript; proxy: BatchProxy; line: Line },
    owned: AsyncDisposableStack,
    options: SceneOptions,
  ) {
    this.edge = parts.edge;
    this.script = parts.script;
    this.proxy = parts.proxy;
    this.line = parts.line;
    this.#owned = owned;
    this.#options = options;
  }

  /** Both run, and a domain is served. */
  static async open(options: SceneOptions = {}): Promise<Scene> {
    await using stack = new AsyncDisposableStack();
    const origin = stack.use(await startOrigin());
    const edge = stack.use(await Edge.prepare());
    const proxy = stack.use(await BatchProxy.open(edge.ports.central));
    const line = stack.use(await Line.open(proxy.port));
    const script = new CustomerScript(edge, origin.url, "log-oracle");
    const scene = new Scene({ edge, script, proxy, line }, stack.move(), options);
    try {
      for (const name of ["agent", "central"] as const) scene.setClock(name, 0);
      await scene.startCentral();
      await script.enrol();
      scene.#writeSettings();
      await scene.startAgent();
      for (const { run } of script.steps().slice(0, 2)) await run();
      return scene;
    } catch (error) {
      await scene[Symbol.asyncDispose]();
      throw error;
    }
  }

  get agent(): Program {
    if (this.#agent === undefined) throw new Error("the agent was not started");
    return this.#agent;
  }

  get central(): Program {
    if (this.#central === undefined) throw new Error("central was not started");
    return this.#central;
  }

  get run(): Run {
    const run = this.runs.at(-1);
    if (run === undefined) throw new Error("the agent was not started");
    return run;
  }

  get stateDir(): string {
    return join(this.edge.dir, "agent");
  }

  get spoolDir(): string {
    return join(this.stateDir, "spool");
  }

  /** Of its marks, from some time ago. */
  get marksCopy(): string {
    return join(this.edge.dir, "marks.before");
  }

  get storeDir(): string {
    return join(this.edge.dir, "central/logs");
  }

  async startCentral(): Promise<void> {
    this.#central = await Program.start(
      ["central", "serve", "--config", join(this.edge.dir, "central.yaml")],
      () => answers200(`http://127.0.0.1:${this.edge.ports.central}/readyz`),
      this.#clockOf("central"),
      60_000,
      this.#options.centralMain ?? mainFile,
    );
  }

  async restartCentral(): Promise<void> {
    this.#isCentralUp = false;
    await this.central.restart();
    this.#isCentralUp = true;
  }

  /** It was ready, and nobody killed it since. */
  get isCentralUp(): boolean {
    return this.#isCentralUp && !this.central.ended;
  }

  /** A new run; when it does not come up on a busy machine another one, as a service manager would have it. */
  async startAgent(): Promise<void> {
    for (let left = startsMax; ; left--) {
      try {
        await this.#startRun();
        return;
      } catch (error) {
        if (left <= 1) throw error;
        await this.#agent?.kill();
        this.run.killedMs = Date.now();
      }
    }
  }

  /** Its lanes are known by the segments that it opens. */
  async #startRun(): Promise<void> {
    const before = this.#epochs();
    const run = { no: this.runs.length + 1, epoch: "", killedMs: undefined, isDamaged: false };
    this.runs.push(run);
    try {
      if (this.#agent === undefined)
        this.#agent = await Program.start(
          ["agent", "run", "--config", join(this.edge.dir, "agent.yaml")],
          () => answers200(`http://127.0.0.1:${this.edge.ports.metrics}/readyz`),
          this.#clockOf("agent"),
          60_000,
          this.#options.agentMain ?? mainFile,
        );
      else await this.#agent.restart();
    } finally {
      run.epoch = [...this.#epochs()].find((each) => !before.has(each)) ?? "";
    }
  }

  async killAgent(): Promise<void> {
    await this.agent.kill();
    this.run.killedMs = Date.now();
  }

  /** Started, and killed so long after that, ready or not. */
  async killAgentInStart(afterMs: number): Promise<void> {
    const starting = this.#startRun().catch(() => undefined); // It need not come up.
    await sleep(afterMs);
    await this.killAgent();
    await starting;
  }

  async killCentralInStart(afterMs: number): Promise<void> {
    const starting = this.restartCentral().catch(() => undefined); // As above.
    await sleep(afterMs);
    await this.central.kill();
    await starting;
  }

  /** Orderly: nothing may be lost. */
  async stopAgent(): Promise<void> {
    await this.agent.terminate();
  }

  /** The wall clock of one program, from now on. */
  setClock(name: "agent" | "central", offsetMs: number): void {
    const path = this.#clockPath(name);
    writeFileSync(`${path}.new`, String(offsetMs));
    renameSync(`${path}.new`, path);
    if (name === "agent") this.clockSteps.push({ sinceMs: Date.now(), offsetMs });
  }

  async metrics(): Promise<string> {
    const url = `http://127.0.0.1:${this.edge.ports.metrics}/metrics/deployment`;
    const response = await fetch(url, { signal: AbortSignal.timeout(5_000) });
    return response.text();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent?.[Symbol.asyncDispose]();
    await this.#central?.[Symbol.asyncDispose]();
    await this.#owned.disposeAsync();
  }

  #writeSettings(): void {
    const { visitors } = this.edge.ports;
    this.edge.changeAgentSettings({
      central_url: `http://127.0.0.1:${this.line.port}`,
      accelerator: {
        listen: `127.0.0.1:${visitors}`,
        workers: this.#options.workers ?? 2,
        trusted_proxies: ["127.0.0.1"],
      },
      spool: { max: "8MiB", ...this.#options.spool },
      logs: { canary_interval: "1s" },
    });
  }

  #epochs(): ReadonlySet<string> {
    mkdirSync(this.spoolDir, { recursive: true, mode: 0o700 });
    const names = readdirSync(this.spoolDir);
    return new Set(names.flatMap((name) => segmentName.exec(name)?.[1] ?? []));
  }

  #clockPath(name: "agent" | "central"): string {
    return join(this.edge.dir, `${name}.clock`);
  }

  #clockOf(name: "agent" | "central"): NodeJS.ProcessEnv {
    const preload = pathToFileURL(join(import.meta.dirname, "log-oracle-clock.ts")).href;
    return {
      NODE_OPTIONS: `${process.env["NODE_OPTIONS"] ?? ""} --import=${preload}`,
      ACCEL_TEST_CLOCK: this.#clockPath(name),
    };
  }
}
