// The process that is to take over, as the agent before sees it: started, listened to, and ended where it is not to go on.
//
// A shell stands between the two, which ends before systemd is told of the successor: a process whose parent has ended is a child of systemd. systemd waits
// for the end of its own children, and knows how they ended.

import { spawn, type ChildProcess } from "node:child_process";
import { closeSync } from "node:fs";
import { constants } from "node:os";
import type { Readable } from "node:stream";
import { text as readText } from "node:stream/consumers";
import { setTimeout as after } from "node:timers/promises";
import { Ending } from "../base/ending.ts";
import { within } from "../base/wait.ts";
import type { ToSuccessor } from "../base/succession.ts";

/** How to start a release. */
export type ReleaseStart = { readonly node: string; readonly program: string };

export type Launch = {
  readonly release: ReleaseStart;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** The sockets, which have the numbers from 3 on there. They are closed here. */
  readonly fds: readonly number[];
  /** Ends a process at once. Throws where there is none. */
  readonly end: (pid: number) => void;
};

const killedWithinMs = 5_000;
/** What it answers, and its last records, have this time. */
const dismissedWithinMs = 20_000;
/** The shell hears of an end at once, on a machine that is not overloaded. */
const endToldWithinMs = 300;
/** What a shell ends with that cannot start a program. */
const cannotStart: readonly (number | null)[] = [126, 127];
const bySignal = 128;
const firstFd = 3;

/**
 * The shell's script: starts the successor, tells its pid by the descriptor after the channel's, and waits for it. systemd becomes the parent of the successor
 * when this shell is killed. The successor alone keeps the sockets and the channel open.
 */
function startedBetween(ipc: number): string {
  const pid = ipc + 1;
  const inherited = Array.from({ length: pid - firstFd + 1 }, (_, i) => `${firstFd + i}>&-`);
  // A stop of the unit tells every process of it: whoever waits goes on to.
  return `"$@" ${pid}>&- & trap '' HUP INT TERM; echo $! >&${pid}; exec ${inherited.join(" ")}; wait $!`;
}

/** How a program ended that a shell has waited for, as the end of a sentence. */
function endedText(code: number | null): string {
  if (cannotStart.includes(code)) return `cannot be started: exit status ${code}`;
  const of = (code ?? 0) - bySignal;
  const by = Object.entries(constants.signals).find(([, no]) => no === of)?.[0];
  return `ended ${by === undefined ? `with exit status ${code}` : `by ${by}`}`;
}

export class Successor {
  readonly #shell: ChildProcess;
  readonly #end: Launch["end"];
  readonly #started: Promise<number>;
  readonly #gone = new Ending<string>();
  readonly #heard = { ready: new Ending<void>(), serving: new Ending<void>() };
  #pid = 0;
  /** The shell between has ended. */
  readonly #alone = new Ending<void>();
  /** This process has closed the channel. */
  #isLeft = false;
  /** What it said itself of why it does not serve. */
  #reason: string | undefined;
  #sending: Promise<unknown> = Promise.resolve();
  #onInvalidated: ((no: number, fault: string | undefined) => void) | undefined;

  constructor({ release: { node, program }, args, env, fds, end }: Launch) {
    this.#end = end;
    const ipc = firstFd + fds.length;
    const shell = spawn("/bin/sh", ["-c", startedBetween(ipc), "sh", node, program, ...args], {
      // Its log is this process's: the unit's.
      stdio: ["ignore", "inherit", "inherit", ...fds, "ipc", "pipe"],
      env,
    });
    for (const fd of fds) closeSync(fd);
    this.#shell = shell;
    shell.on("error", (error) => {
      this.#gone.end(`cannot be started: ${error.message}`);
      this.#alone.end();
    });
    shell.once("exit", (code, signal) => this.#shellEnded(code, signal));
    // Only the successor has the other end: it has ended, or has closed it and can be told nothing more.
    shell.once("disconnect", () => void this.#channelClosed());
    shell.on("message", (message: unknown) => this.#hear(message));
    this.#started = this.#readPid(shell.stdio[ipc + 1] as Readable | null | undefined);
  }

  /** Resolves when it is started, with its pid; 0: it could not be started. */
  get started(): Promise<number> {
    return this.#started;
  }

  /** 0 before `started` resolves. */
  get pid(): number {
    return this.#pid;
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
    if (!this.#shell.connected) return;
    this.#shell.send(message, resolve);
    this.#sending = Promise.all([this.#sending, promise]);
  }

  /** Tells what it answers to `invalidate`. */
  followInvalidated(told: (no: number, fault: string | undefined) => void): void {
    this.#onInvalidated = told;
  }

  /** Leaves it to itself, when all that it was told is on its way. */
  async leave(): Promise<void> {
    this.#isLeft = true;
    await this.#sending;
    if (this.#shell.connected) this.#shell.disconnect();
    this.#shell.unref();
  }

  /** Makes systemd its parent, which then learns how it ends. Resolves when that is done; what it ended with is not known here from then on. */
  async release(): Promise<void> {
    this.#shell.kill("SIGKILL");
    await this.#alone.promise;
  }

  /** Has it end, in order, where it was not made the main process. Resolves when it has ended. */
  async dismiss(): Promise<void> {
    await this.leave();
    await within(this.gone, dismissedWithinMs);
    await this.kill();
  }

  /** Resolves when it has ended, or does not although it was killed. Whoever waits for its end goes on. */
  async kill(): Promise<void> {
    const pid = await this.#started;
    // The number is still its own: the shell waits for it, or it has the channel open.
    if (pid !== 0 && (!this.#alone.isOver || this.#shell.connected))
      try {
        this.#end(pid);
      } catch {
        // It has ended meanwhile.
      }
    // Its number was not told: it ends by itself where nobody is before it.
    if (pid === 0 && this.#shell.connected) this.#shell.disconnect();
    await within(this.gone, killedWithinMs);
    this.#gone.end(this.#reason ?? "does not end");
  }

  #shellEnded(code: number | null, signal: NodeJS.Signals | null): void {
    // A shell that was killed says nothing of the successor, which has another parent now.
    if (signal === null) this.#gone.end(this.#reason ?? endedText(code));
    else if (!this.#shell.connected) this.#gone.end(this.#reason ?? "ended");
    this.#alone.end();
  }

  async #channelClosed(): Promise<void> {
    // The shell says how it ended, if it has.
    if (!this.#alone.isOver) await within(this.#alone.promise, endToldWithinMs);
    const how = this.#alone.isOver ? "ended" : "closed its channel";
    if (!this.#isLeft) this.#gone.end(this.#reason ?? how);
  }

  /** Resolves with what the shell says first. */
  async #readPid(said: Readable | null | undefined): Promise<number> {
    const text = said == null ? "" : await Promise.race([readText(said), this.gone.then(() => "")]);
    this.#pid = Number.parseInt(text, 10) || 0;
    return this.#pid;
  }

  /** A release that is no good may say anything. */
  #hear(said: unknown): void {
    const { kind, reason, no, fault } = (said ?? {}) as Readonly<Record<string, unknown>>;
    // It closes what it has opened, and then ends.
    if (kind === "failed" && typeof reason === "string") this.#reason = reason;
    else if (kind === "ready" || kind === "serving") this.#heard[kind].end();
    else if (kind === "invalidated" && typeof no === "number")
      this.#onInvalidated?.(no, typeof fault === "string" ? fault : undefined);
  }
}
