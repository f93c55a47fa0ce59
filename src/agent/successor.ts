// The process that is to take over, as the agent before sees it: started, listened to, and ended where it is not to go on.

import { spawn, type ChildProcess } from "node:child_process";
import { closeSync } from "node:fs";
import { setTimeout as after } from "node:timers/promises";
import { Ending } from "../base/ending.ts";
import type { FromSuccessor, ToSuccessor } from "../base/succession.ts";

/** How to start a release. */
export type ReleaseStart = { readonly node: string; readonly program: string };

export type Launch = {
  readonly release: ReleaseStart;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** The sockets, which have the numbers from 3 on there. They are closed here. */
  readonly fds: readonly number[];
};

const killedWithinMs = 5_000;

export class Successor {
  readonly #child: ChildProcess;
  readonly #gone = new Ending<string>();
  readonly #heard = { ready: new Ending<void>(), serving: new Ending<void>() };
  /** What it said itself of why it does not serve. */
  #reason: string | undefined;
  #sending: Promise<unknown> = Promise.resolve();

  constructor({ release: { node, program }, args, env, fds }: Launch) {
    const child = spawn(node, [program, ...args], {
      // Its log is this process's: the unit's.
      stdio: ["ignore", "inherit", "inherit", ...fds, "ipc"],
      env,
    });
    for (const fd of fds) closeSync(fd);
    this.#child = child;
    child.on("error", (error) => this.#gone.end(`cannot be started: ${error.message}`));
    child.once("exit", (code, signal) =>
      this.#gone.end(
        this.#reason ?? `ended ${signal === null ? `with exit status ${code}` : `by ${signal}`}`,
      ),
    );
    child.on("message", (message) => this.#hear(message as FromSuccessor));
  }

  /** 0: it could not be started. */
  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Resolves with the reason when it has ended. */
  get gone(): Promise<string> {
    return this.#gone.promise;
  }

  get isGone(): boolean {
    return this.#gone.isOver;
  }

  /** Resolves when it has come so far, with undefined; otherwise with why not, as the end of a sentence. */
  async until(
    what: "ready" | "serving",
    waitMs: number,
    stop?: AbortSignal,
  ): Promise<string | undefined> {
    const enough = new AbortController();
    const signal = stop === undefined ? enough.signal : AbortSignal.any([enough.signal, stop]);
    const late = after(waitMs, `was not ${what} within ${waitMs / 1_000} s`, { signal }).catch(
      () => "was not waited for: the agent stops",
    );
    const come = this.#heard[what].promise.then(() => undefined);
    const met = await Promise.race([come, this.gone, late]);
    enough.abort();
    return met;
  }

  /** Never throws: who has ended hears nothing. */
  tell(message: ToSuccessor): void {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    if (!this.#child.connected) return;
    this.#child.send(message, resolve);
    this.#sending = Promise.all([this.#sending, promise]);
  }

  /** Leaves it to itself, when all that it was told is on its way. */
  async leave(): Promise<void> {
    await this.#sending;
    if (this.#child.connected) this.#child.disconnect();
    this.#child.unref();
  }

  /** Resolves when it has ended. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    const enough = new AbortController();
    const late = after(killedWithinMs, undefined, { signal: enough.signal }).catch(() => {});
    await Promise.race([this.gone, late]);
    enough.abort();
  }

  #hear(message: FromSuccessor): void {
    // It closes what it has opened, and then ends.
    if (message.kind === "failed") this.#reason = message.reason;
    else if (message.kind === "ready" || message.kind === "serving")
      this.#heard[message.kind].end();
  }
}
