// An agent that hands over as under systemd: the test is systemd here. It hears who the main process is, follows every process that was seen, and starts the unit
// again when the main process is killed. Who has the state directory is seen from outside, by the descriptors of the processes.

import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { callControl } from "../../src/base/control-socket.ts";
import { unitLevel, unitLevelVariable } from "../../src/base/unit-level.ts";
import { CustomerScript, domain } from "./customer-script.ts";
import { DatagramReader } from "./datagrams.ts";
import { Edge } from "./edge.ts";
import { mainFile, node } from "./process.ts";
import { until } from "./until.ts";

/** How far a hand-over has come. */
export const moments = ["started", "ready", "taken", "main"] as const;
export type Moment = (typeof moments)[number];
export type Facts = { readonly pid: number; readonly returned: string | null };
export type Step = { readonly step: string; readonly pid: number; readonly reason?: string };
export type Replaced = { readonly steps: readonly string[]; readonly why: string | undefined };

const slowMs = 120_000;
const endsMs = 60_000;
const lookMs = 5;
const settleMs = 200;

let opened = 0;

export class ReplacedAgent implements AsyncDisposable {
  readonly edge: Edge;
  readonly script: CustomerScript;
  /** The main process of the unit, as it was told to systemd. */
  mainPid = 0;
  /** Answers of the origin to /private?slow wait for it. */
  slow = Promise.withResolvers<void>();
  /** What was seen that must never be. */
  readonly violations: string[] = [];
  readonly #pids = new Set<number>();
  readonly #notifySocket: string;
  readonly #looking: NodeJS.Timeout;
  readonly #owned: AsyncDisposableStack;

  private constructor(
    owned: AsyncDisposableStack,
    edge: Edge,
    origin: string,
    systemd: { readonly name: string; readonly reader: DatagramReader },
  ) {
    this.#owned = owned;
    this.edge = edge;
    this.script = new CustomerScript(edge, origin, "hand-over");
    this.#notifySocket = systemd.name;
    void this.#followMain(systemd.reader);
    this.#looking = setInterval(() => this.#look(), lookMs);
  }

  /** Resolves when it serves. */
  static async open(): Promise<ReplacedAgent> {
    await using stack = new AsyncDisposableStack();
    let slow = (): Promise<void> => Promise.resolve();
    // A GET of /kept is stored; a POST is answered when the test says so, as everything slow is.
    const origin = createServer((request, response) => {
      const { method, url = "" } = request;
      if (method === "GET" && url.includes("kept"))
        response.setHeader("Cache-Control", "max-age=300");
      const answer = (): void => void response.end("the origin's\n");
      if (method === "POST" || url.includes("slow")) void slow().then(answer);
      else answer();
    });
    await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
    stack.defer(() => {
      origin.close();
      origin.closeAllConnections();
    });
    const address = origin.address();
    const port = typeof address === "object" ? address?.port : 0;
    const edge = stack.use(await Edge.prepare());
    const name = `@accel-hand-over-${process.pid}-${++opened}`;
    const reader = stack.use(await DatagramReader.at(name));
    await edge.startCentral();
    const url = `http://127.0.0.1:${port}`;
    const agent = new ReplacedAgent(stack.move(), edge, url, { name, reader });
    slow = async () => agent.slow.promise;
    try {
      await agent.script.enrol();
      await agent.start();
      for (const { run } of agent.script.steps().slice(0, 2)) await run();
    } catch (error) {
      await agent[Symbol.asyncDispose]();
      throw error;
    }
    return agent;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#looking);
    await this.end();
    await this.#owned.disposeAsync();
  }

  async start(): Promise<void> {
    const unit = `${unitLevelVariable}=${unitLevel}`;
    const notify = `NOTIFY_SOCKET=${this.#notifySocket}`;
    await this.edge.startAgent(undefined, ["env", notify, unit]);
    this.mainPid = this.edge.agent.pid;
    this.#pids.add(this.mainPid);
  }

  /** The unit's job: ahead of a stop the unit's ExecStop= sends a signal to who is stopped. */
  job: "stop" | "restart" = "restart";

  /** Ends every process of the unit, as systemd does before it starts the unit again. */
  async end(): Promise<void> {
    for (const pid of this.#pids) this.kill(pid);
    await until("all have ended", async () => [...this.#pids].every((pid) => !isAlive(pid)));
    this.#pids.clear();
  }

  kill(pid: number): void {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended.
    }
  }

  get config(): string {
    return join(this.edge.dir, "agent.yaml");
  }

  get stateDir(): string {
    return join(this.edge.dir, "agent");
  }

  async served(path = "/private"): Promise<number> {
    return (await this.edge.visit(path, { host: domain })).status;
  }

  /** Asks until an agent answers. */
  async facts(): Promise<Facts> {
    return until("an agent answers operators", async () => this.#ask(), slowMs);
  }

  /** Undefined: nobody answers, as between two agents. */
  async #ask(): Promise<Facts | undefined> {
    try {
      for await (const said of this.#control("process", {})) {
        const now = said as Facts;
        this.#pids.add(now.pid);
        return now;
      }
    } catch {
      // Nobody listens.
    }
    return undefined;
  }

  /** Asks the agent to hand over to a program. Resolves with the steps that it told, and with why it did not. */
  async replace(
    program: string = mainFile,
    onStep: (step: Step) => void = () => undefined,
    more: Readonly<Record<string, unknown>> = {},
  ): Promise<Replaced> {
    const steps: string[] = [];
    try {
      const asked = { node, program, version: "next", unit: unitLevel, ...more };
      for await (const raw of this.#control("replace", asked)) {
        const step = raw as Step;
        if (step.pid !== 0) this.#pids.add(step.pid);
        steps.push(step.step);
        onStep(step);
        if (step.reason !== undefined) return { steps, why: step.reason };
      }
      return { steps, why: undefined };
    } catch (error) {
      return { steps, why: error instanceof Error ? error.message : String(error) };
    }
  }

  /** Has the agent hand over, and resolves when it has come so far. */
  async comeTo(moment: Moment): Promise<{ readonly old: number; readonly next: number }> {
    const { pid: old } = await this.facts();
    const wanted = moment === "started" ? "started" : "ready";
    const next = await until("a successor", async () => {
      const { promise, resolve } = Promise.withResolvers<number | undefined>();
      // Where the agent has not heard yet that another one ended, it is asked again.
      void this.replace(mainFile, ({ step, pid }) => {
        if (step === wanted) resolve(pid);
      }).then(() => resolve(undefined));
      return promise;
    });
    if (moment === "taken") await until("it has the state", () => hasState(next), slowMs);
    if (moment === "main") {
      await until("it is the main process", () => this.mainPid === next, slowMs);
      // systemd is told first. One that has not heard of it itself ends when the process before does, and systemd starts the unit anew.
      const told = new RegExp(`"successor":${next},"gave_ms"`);
      await until("it knows", () => told.test(this.edge.agent.said), slowMs);
    }
    return { old, next };
  }

  /** Stops the unit: systemd signals every process of its control group, or the main process alone where it cannot. Resolves when that one has ended. */
  async stop(reaches: "all" | "main"): Promise<void> {
    const main = this.mainPid;
    const all = [...this.#pids].filter(isAlive).flatMap((pid) => [pid, ...shellsOf(pid)]);
    const reached = reaches === "all" ? all : [main];
    if (this.job === "stop") for (const pid of reached) process.kill(pid, "SIGWINCH");
    for (const pid of reached) process.kill(pid, "SIGTERM");
    await until("the main process ends", async () => !isAlive(main), endsMs);
  }

  /** Processes that were seen and still run. */
  get left(): readonly number[] {
    return [...this.#pids].filter(isAlive);
  }

  /** Kills the successor when a hand-over has come so far, and then does what systemd does. Resolves when an agent serves again. */
  async killSuccessor(moment: Moment): Promise<{ readonly old: number; readonly now: Facts }> {
    const { old, next } = await this.comeTo(moment);
    this.kill(next);
    if (moment === "main") {
      // systemd, whose child it is, starts the unit anew, and ends the one before if that still lives.
      await until("the one before ends", async () => !isAlive(old), endsMs);
      await this.end();
      await this.start();
    }
    return { old, now: await this.#servesWithout(next) };
  }

  /** The same with the process before. */
  async killPredecessor(moment: Moment): Promise<{ readonly next: number; readonly now: Facts }> {
    const { old, next } = await this.comeTo(moment);
    this.kill(old);
    if (moment !== "main") {
      // systemd follows the one before, and starts the unit anew: nobody may be in the way.
      await until("the successor ends", async () => !isAlive(next), endsMs);
      await this.end();
      await this.start();
    }
    return { next, now: await this.#servesWithout(old) };
  }

  /** Does what systemd does until another process than the one that was killed serves. */
  async afterKill(killed: number): Promise<Facts> {
    await until(
      "another process serves",
      async () => {
        if (!(await this.#hasMain())) {
          await this.end();
          await this.start();
        }
        const now = await this.#ask();
        return now !== undefined && now.pid !== killed && isAlive(now.pid);
      },
      slowMs,
    );
    return this.#servesWithout(killed);
  }

  /** What the main process said before it ended may still be on its way. */
  async #hasMain(): Promise<boolean> {
    if (isAlive(this.mainPid)) return true;
    await sleep(settleMs);
    return isAlive(this.mainPid);
  }

  async #servesWithout(killed: number): Promise<Facts> {
    const status = await this.served();
    if (status !== 200) this.violations.push(`a visitor was answered ${status}`);
    const now = await this.facts();
    if (now.pid === killed || !isAlive(now.pid))
      this.violations.push(`process ${now.pid} answers, and is dead`);
    return now;
  }

  /** One writer at a time. A process is asked twice: one may have closed between two looks what the other opened. */
  #look(): void {
    const having = [...this.#pids].filter(hasState);
    if (having.length > 1 && having.every(hasState))
      this.violations.push(`${having.join(" and ")} have the state directory at once`);
  }

  async *#control(command: string, parameters: unknown): AsyncGenerator {
    const path = join(this.stateDir, "control.sock");
    yield* callControl(path, command, parameters, AbortSignal.timeout(slowMs));
  }

  async #followMain(systemd: DatagramReader): Promise<void> {
    for (let said = await systemd.next(); said !== ""; said = await systemd.next())
      this.mainPid = Number(/^MAINPID=(\d+)$/m.exec(said)?.[1] ?? this.mainPid);
  }
}

/** A zombie, whose parent has not heard of its end yet, is none. */
export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

/** What stands between two agents; what stood between before may not have been buried yet. */
export function shellsOf(parent: number): readonly number[] {
  return childrenOf(parent).filter(
    (pid) => isAlive(pid) && readFileSync(`/proc/${pid}/comm`, "utf8") === "sh\n",
  );
}

export function childrenOf(pid: number): readonly number[] {
  const tasks = readdirSync(`/proc/${pid}/task`);
  return tasks.flatMap((task) => (childrenText(pid, task).match(/\d+/g) ?? []).map(Number));
}

/** A thread that has ended meanwhile has no children. */
function childrenText(pid: number, task: string): string {
  try {
    return readFileSync(`/proc/${pid}/task/${task}/children`, "utf8");
  } catch (error) {
    if (!existsSync(`/proc/${pid}/task/${task}`)) return "";
    throw error;
  }
}

export function parentOf(pid: number): number {
  return Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}

/** Whether it has the state. */
function hasState(pid: number): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => {
      try {
        return readlinkSync(`/proc/${pid}/fd/${fd}`).endsWith("/agent/agent.db");
      } catch {
        return false; // Closed meanwhile.
      }
    });
  } catch {
    return false;
  }
}
