// The real programs as processes: started, waited for, killed, with what they said at hand when a test fails.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { until } from "./until.ts";

const root = join(import.meta.dirname, "../..");
export const node = process.execPath;
/** ACCEL_TEST_MAIN names the built program: it starts in half the time, which CI has use for. */
export const mainFile = process.env["ACCEL_TEST_MAIN"] ?? join(root, "src/main.ts");

export class Program implements AsyncDisposable {
  readonly #args: readonly string[];
  readonly #ready: (() => Promise<boolean>) | undefined;
  readonly #env: NodeJS.ProcessEnv;
  readonly #readyWithinMs: number;
  readonly #main: string;
  readonly #prefix: readonly string[];
  #child: ChildProcess;
  /** It has ended, and its pipes with it. */
  #closed: Promise<void> = Promise.resolve();
  #said = "";

  private constructor(
    args: readonly string[],
    ready: (() => Promise<boolean>) | undefined,
    env: NodeJS.ProcessEnv,
    readyWithinMs: number,
    main: string,
    prefix: readonly string[],
  ) {
    this.#args = args;
    this.#ready = ready;
    this.#env = env;
    this.#readyWithinMs = readyWithinMs;
    this.#main = main;
    this.#prefix = prefix;
    this.#child = this.#spawn();
  }

  /**
   * Runs `main.ts ARGS`, or another `main` of it; resolves when `ready` says so, at once without it. `prefix`: a command that runs it in its own place, as a
   * tracer does.
   */
  static async start(
    args: readonly string[],
    ready?: () => Promise<boolean>,
    env: NodeJS.ProcessEnv = {},
    readyWithinMs = 120_000,
    main = mainFile,
    prefix: readonly string[] = [],
  ): Promise<Program> {
    const program = new Program(args, ready, env, readyWithinMs, main, prefix);
    await program.#untilReady();
    return program;
  }

  get said(): string {
    return this.#said;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get ended(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  async restart(): Promise<void> {
    if (!this.ended) throw new Error("still running");
    this.#child = this.#spawn();
    await this.#untilReady();
  }

  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** SIGTERM; the exit code. */
  async terminate(): Promise<number | null> {
    await this.#end("SIGTERM");
    return this.exited();
  }

  /** Its exit code, when all that it said is there, too: that comes by pipes, which may be read after its end. */
  async exited(): Promise<number | null> {
    await this.#closed;
    return this.#child.exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end("SIGKILL");
  }

  #spawn(): ChildProcess {
    const [command = node, ...rest] = [...this.#prefix, node, this.#main, ...this.#args];
    const child = spawn(command, rest, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...this.#env },
    });
    for (const stream of [child.stdout, child.stderr])
      stream.on(
        "data",
        (chunk: Buffer) => (this.#said = (this.#said + chunk.toString()).slice(-200_000)),
      );
    const { promise, resolve } = Promise.withResolvers<void>();
    child.once("close", () => resolve());
    this.#closed = promise;
    return child;
  }

  async #untilReady(): Promise<void> {
    const ready = this.#ready;
    if (ready === undefined) return;
    const what = `main.ts ${this.#args.join(" ")}`;
    await until(`ready: ${what}`, async () => this.ended || ready(), this.#readyWithinMs).catch(
      (error: unknown) => {
        throw new Error(`${String(error)}\n${this.#said.slice(-4_000)}`);
      },
    );
    if (!this.ended) return;
    const how = this.#child.exitCode ?? this.#child.signalCode;
    throw new Error(`${what} ended with ${how} before it was ready:\n${this.#said.slice(-4_000)}`);
  }

  async #end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    if (this.ended) return;
    const exited = once(this.#child, "exit");
    this.#child.kill(signal);
    await exited;
  }
}

/** Whether a URL answers 200. */
export async function answers200(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(10_000) });
    await response.body?.cancel();
    return response.status === 200;
  } catch {
    return false;
  }
}
