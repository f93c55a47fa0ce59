// `npm start` with all that it starts, as a terminal has them: one process group, and what else works for the demo.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "./until.ts";

const root = join(import.meta.dirname, "../..");

export type Ended = { readonly code: number | null; readonly signal: string | null };

export class NpmStart implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #state: string;
  #said = "";

  constructor(state: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    this.#state = state;
    this.#child = spawn("npm", ["start", "--", "--state", state, ...args], {
      cwd: root,
      // A group of its own, as a shell gives each command.
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...env },
    });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on("data", (chunk: Buffer) => (this.#said += chunk.toString()));
  }

  get said(): string {
    return this.#said;
  }

  async says(text: string): Promise<void> {
    await until(`it says ${text}`, () => this.#isOver() || this.#said.includes(text), 300_000);
    if (!this.#said.includes(text)) throw new Error(`it ended:\n${this.#said.slice(-4_000)}`);
  }

  /** All is told, and demo.json is there. */
  async ready(): Promise<void> {
    await this.says("Ctrl-C stops it");
  }

  signal(name: NodeJS.Signals, to: "npm" | "group" | "demo"): void {
    const pid = this.#child.pid ?? 0;
    if (to !== "demo") process.kill(to === "group" ? -pid : pid, name);
    else for (const demo of this.processes("agent\0demo\0")) process.kill(demo, name);
  }

  async ended(): Promise<Ended> {
    if (!this.#isOver()) await once(this.#child, "exit");
    return { code: this.#child.exitCode, signal: this.#child.signalCode };
  }

  /** Processes that have this demo's state directory in their command line, and these words. */
  processes(words = ""): readonly number[] {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .filter((pid) => {
        const line = commandLine(pid);
        return line.includes(this.#state) && line.includes(words);
      })
      .map(Number);
  }

  get hasPlaces(): boolean {
    return existsSync(join(this.#state, "demo.json"));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const pid of this.processes()) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It ended meanwhile.
      }
    }
    await this.ended();
  }

  #isOver(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }
}

/** Empty where the process has ended. */
function commandLine(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}
