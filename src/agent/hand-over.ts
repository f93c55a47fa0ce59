// Hands an agent over to a successor, while visitors are served (decision 0114). The successor is started beside this process, with duplicates of the sockets. When it
// has all that can be had without the state directory, this process gives up its state, waits until the successor accepts visitors, makes it the unit's main
// process, and answers what was under way.
//
// What goes wrong before this process gives anything up changes nothing. What goes wrong afterwards brings this release back: this process starts it again.

import { closeSync } from "node:fs";
import { setTimeout as after } from "node:timers/promises";
import { keptNameOf } from "../base/kept-sockets.ts";
import type { Log } from "../base/log.ts";
import type { SdNotify } from "../base/sd-notify.ts";
import { successorEnv } from "../base/succession.ts";
import { once, within } from "../base/wait.ts";
import { unitLevelVariable } from "../base/unit-level.ts";
import { AccelError } from "../core/faults.ts";
import type { Agent, Parted } from "./parts.ts";
import { Successor, type ReleaseStart } from "./successor.ts";

/** A successor that is not ready by then is none. */
const readyMs = 60_000;
/** Visitors wait while it takes the state directory. */
const takeMs = 20_000;
/** The lines of workers that have ended are here in moments. */
const lastLinesMs = 5_000;
/** How long answers tell visitors to come on another connection before nobody accepts one. */
const slackMs = 1_000;

export type HandOverOptions = {
  readonly own: ReleaseStart;
  readonly pid: number;
  readonly version: string;
  readonly configPath: string;
  readonly env: NodeJS.ProcessEnv;
  /** Ends a process at once. Throws where there is none. */
  readonly end: (pid: number) => void;
  readonly log: Log;
  readonly stop: AbortSignal;
  /** Refuses whoever comes to these sockets from now on, if nothing is started behind the stop of the unit. Never throws. */
  readonly refuseAt: (lent: Lent) => Promise<void>;
  /** Whether nothing is started behind the stop of the unit. */
  readonly isLast: () => Promise<boolean>;
};

/** What an operator is told on the way. */
type Step = {
  readonly step: "started" | "ready" | "failed";
  readonly pid: number;
  readonly reason?: string;
};

type Sockets = Agent["sockets"];
type Lent = ReturnType<Sockets["lend"]>;

export class HandOver {
  readonly #options: HandOverOptions;
  #prepared = Promise.withResolvers<Successor>();
  #sockets: Sockets | undefined;
  /** Resolves when the agent before this one answers nobody any more: what it answered last is recorded here. */
  #isAlone: Promise<void> = Promise.resolve();
  #isUnderWay = false;
  /** Why this release serves although another one was to take over. */
  #returned: string | undefined;

  constructor(options: HandOverOptions) {
    this.#options = options;
  }

  /** Lets successors be started, which are lent these sockets, when the agent before has ended. `returned`: why another release did not take over. */
  serves(
    { sockets }: Pick<Agent, "sockets">,
    returned: string | undefined,
    isAlone: Promise<void> = Promise.resolve(),
  ): void {
    this.#sockets = sockets;
    this.#isAlone = isAlone;
    this.#returned = returned;
  }

  /** Resolves when a successor is ready to take the state directory. */
  get prepared(): Promise<Successor> {
    return this.#prepared.promise;
  }

  /** Tells which process this is. */
  process(): unknown {
    const { pid, version } = this.#options;
    return { pid, version, returned: this.#returned ?? null };
  }

  /**
   * Starts a successor and says how that goes; the last step is `ready` or `failed`, with the reason, and then nothing has changed. Throws USAGE or BUSY, and
   * HAND_OVER_UNSUITED where only a restart will do.
   */
  async *replace(asked: unknown): AsyncGenerator<Step> {
    const { release, version } = this.#judge(asked);
    const sockets = this.#sockets;
    if (this.#isUnderWay || sockets === undefined)
      throw new AccelError("BUSY", "the agent hands over already");
    this.#isUnderWay = true;
    let successor: Successor | undefined;
    let isReady = false;
    try {
      await Promise.race([this.#isAlone, once(this.#options.stop)]);
      successor = this.#start(release, sockets.addresses, sockets.lend());
      const pid = await successor.started;
      if (pid !== 0) yield { step: "started", pid };
      const { log, stop } = this.#options;
      const why = await successor.until("ready", readyMs, stop);
      if (why !== undefined) {
        log.error({ successor: pid, version, reason: why }, "a successor was not taken");
        yield { step: "failed", pid, reason: `version ${version} ${why}` };
        return;
      }
      log.info({ successor: pid, version }, "a successor is ready");
      isReady = true;
      this.#returned = undefined;
      this.#prepared.resolve(successor);
      yield { step: "ready", pid };
    } finally {
      // Also where the operator has gone who asked for it.
      if (!isReady) {
        await successor?.kill();
        this.#isUnderWay = false;
      }
    }
  }

  /**
   * Gives all to the successor. Resolves with true when this process has nothing left to do, and with false where the successor ended, or a stop came, before anything
   * was given up: the agent serves on. Throws HAND_OVER_FAILED where visitors are left to the process that systemd starts next.
   */
  async give(
    successor: Successor,
    agent: Agent,
    { releaseLock, notify }: { readonly releaseLock: () => void; readonly notify: SdNotify },
  ): Promise<boolean> {
    const { log, stop } = this.#options;
    agent.slacken(true);
    await Promise.race([after(slackMs), successor.gone]);
    if (successor.isGone || stop.aborted) {
      agent.slacken(false);
      await successor.kill();
      const reason = await successor.gone;
      this.#returned = `the successor ${reason}`;
      this.#prepared = Promise.withResolvers();
      this.#isUnderWay = false;
      log.error({ reason }, "the successor ended before it took anything; this agent serves on");
      return false;
    }
    const { addresses } = agent.sockets;
    const spare = agent.sockets.lend();
    const began = performance.now();
    const parted = await agent.handOver();
    releaseLock();
    const gaveMs = performance.now() - began;
    const next = await this.#takenBy(successor, addresses, spare, parted);
    if (stop.aborted) return this.#stopBoth(next, parted);
    const waitedMs = performance.now() - began;
    const [gave_ms, waited_ms] = [gaveMs, waitedMs].map(Math.round);
    await next.release();
    await notify.send(`MAINPID=${next.pid}`);
    next.tell({ kind: "main" });
    log.info({ successor: next.pid, gave_ms, waited_ms }, "handed over");
    await this.#part(next, parted);
    return true;
  }

  /** The unit stops, and does not know of the successor: its end is waited for here, behind the last answers of both. */
  async #stopBoth(next: Successor, parted: Parted): Promise<true> {
    if (await this.#options.isLast()) next.tell({ kind: "last" });
    await this.#finish(next, parted);
    await next.dismiss();
    return true;
  }

  /** Resolves with who accepts visitors. Throws where nobody does; nobody is answered here any more, then. */
  async #takenBy(
    first: Successor,
    addresses: Sockets["addresses"],
    spare: Lent,
    parted: Parted,
  ): Promise<Successor> {
    try {
      return await this.#take(first, addresses, spare);
    } catch (error) {
      parted.cut();
      throw error;
    }
  }

  /** Has the successor take the state directory, or this release again. Resolves with who accepts visitors. */
  async #take(first: Successor, addresses: Sockets["addresses"], spare: Lent): Promise<Successor> {
    const { log, own, stop, version } = this.#options;
    first.tell({ kind: "take" });
    const why = await this.#awaited(first.until("serving", takeMs), spare);
    if (why === undefined) {
      closeLent(spare);
      return first;
    }
    await first.kill();
    if (stop.aborted) {
      // It may have listened meanwhile.
      await this.#options.refuseAt(spare);
      closeLent(spare);
      return first;
    }
    const because = `the successor ${why}`;
    log.error({ reason: because }, `version ${version} takes its place again`);
    const again = this.#start(own, addresses, spare);
    const failed = (await again.until("ready", readyMs)) ?? (await this.#retake(again, because));
    if (failed === undefined) return again;
    await again.kill();
    throw new AccelError("HAND_OVER_FAILED", `${because}, and version ${version} ${failed}`);
  }

  /** Waits until somebody serves or nobody will. Nobody accepts meanwhile: at a stop whoever comes is refused at once, for a successor that is to stop as well takes its time. */
  async #awaited<T>(serving: Promise<T>, spare: Lent): Promise<T> {
    const { refuseAt, stop } = this.#options;
    const isAnswered = serving.then(() => true);
    if (!(await Promise.race([isAnswered, once(stop).then(() => false)]))) await refuseAt(spare);
    return serving;
  }

  async #retake(again: Successor, because: string): Promise<string | undefined> {
    again.tell({ kind: "take", because });
    return again.until("serving", takeMs);
  }

  /** Answers what is under way, and leaves the successor, which systemd follows. */
  async #part(next: Successor, parted: Parted): Promise<void> {
    await this.#finish(next, parted);
    if (next.isGone && !this.#options.stop.aborted) {
      // systemd starts the unit again when this process has ended, too: whom it still answers would keep all others waiting.
      parted.cut();
      throw new AccelError("HAND_OVER_FAILED", `the successor ${await next.gone}`);
    }
    await next.leave();
  }

  /** Answers what is under way, and sends along what it changes, its records, and the counts of unreviewed bots. */
  async #finish(
    next: Successor,
    { quiet, ended, records, bots, invalidations }: Parted,
  ): Promise<void> {
    next.followInvalidated((no, fault) => invalidations.answered(no, fault));
    invalidations.follow((asked) => next.tell({ kind: "invalidate", ...asked }));
    records.follow((line) => next.tell({ kind: "record", line }));
    bots.follow((counts) => next.tell({ kind: "counts", counts }));
    await Promise.race([quiet, next.gone]);
    next.tell({ kind: "quiet" });
    await Promise.race([ended, next.gone]);
    // A worker's last lines may be on their way when it has ended.
    const complete = Promise.all([records.complete(), bots.complete()]);
    await within(Promise.race([complete, next.gone]), lastLinesMs);
    if (records.lost > 0)
      this.#options.log.error(
        { records: records.lost },
        "request records did not fit and are lost",
      );
  }

  #judge(asked: unknown): { readonly release: ReleaseStart; readonly version: string } {
    const { node, program, version, unit } = asked as Readonly<Record<string, unknown>>;
    if (typeof node !== "string" || typeof program !== "string" || typeof version !== "string")
      throw new AccelError("USAGE", "replace takes node, program and version");
    const { env } = this.#options;
    const level = env[unitLevelVariable];
    if (env["NOTIFY_SOCKET"] === undefined)
      throw new AccelError(
        "HAND_OVER_UNSUITED",
        "this agent was not started by systemd: whoever did so follows this process, and not a successor",
      );
    if (level !== unit)
      throw new AccelError(
        "HAND_OVER_UNSUITED",
        `version ${version} brings another unit than the one that this agent was started with`,
      );
    return { release: { node, program }, version };
  }

  #start(
    release: ReleaseStart,
    { listen, tlsListen }: Sockets["addresses"],
    lent: Lent,
  ): Successor {
    const { env, configPath, end } = this.#options;
    const { plain, secure } = lent;
    const fds = secure === null ? [plain] : [plain, secure];
    const names = [listen, ...(tlsListen === null ? [] : [tlsListen])].map(keptNameOf);
    const args = ["agent", "run", "--config", configPath];
    return new Successor({ release, args, env: successorEnv(env, names), fds, end });
  }
}

function closeLent({ plain, secure }: Lent): void {
  closeSync(plain);
  if (secure !== null) closeSync(secure);
}
