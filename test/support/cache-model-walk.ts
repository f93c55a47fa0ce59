// One walk of the model check: visitors, customer, central and fate act upon an agent in the order that the steps say, and whatever is served is
// judged by the oracle. A step is a name and three numbers, and means something in every state: so any part of a walk is a walk.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { openSqlite } from "../../src/base/sqlite.ts";
import { inScope, type Scope } from "../../src/agent/cache/entry.ts";
import type { IndexFacts } from "../../src/agent/cache/opening.ts";
import { ModelAgent } from "./cache-model-agent.ts";
import { ModelDisk } from "./cache-model-disk.ts";
import { Oracle, Order, Violation } from "./cache-model-oracle.ts";
import { settled, VirtualTimers } from "./cache-model-time.ts";
import { keyOf, Visitors, type VisitorBugs } from "./cache-model-visitors.ts";
import { pages, patternNo, type Pattern } from "./cache-model-words.ts";

/** How often each step is taken, of the sum of all. */
export const stepWeights = {
  fill: 14,
  code: 6,
  startFetch: 14,
  readSource: 14,
  finishFetch: 14,
  lookUp: 16,
  hold: 6,
  send: 6,
  startRefresh: 3,
  startVariant: 6,
  finishRevision: 7,
  clear: 4,
  order: 3,
  unlink: 0.4,
  invalidate: 1.5,
  activate: 0.5,
  receipt: 4,
  deliver: 25,
  turn: 14,
  rush: 8,
  matchRead: 7,
  matchAnswer: 7,
  matchFail: 0.15,
  deadlines: 0.1,
  copy: 0.4,
  kill: 0.3,
  powerLoss: 0.4,
  stop: 0.1,
  replaceThread: 0.25,
  putBack: 0.2,
  drop: 0.05,
} as const;
export type StepName = keyof typeof stepWeights;
export type Step = readonly [name: StepName, a: number, b: number, c: number];

/** Faults of the composition, planted by the test. */
export type Bugs = VisitorBugs & {
  readonly unlinkForgets?: boolean;
  /** agent.db says what the file says. */
  readonly trustsAnyCopy?: boolean;
};

export type WalkOptions = {
  readonly directory: string;
  /** So small that entries are evicted all the time; then nothing is expected to stay. */
  readonly isSmall: boolean;
  readonly bugs: Bugs;
};

const roomy = 64 * 2 ** 20;
const cramped = 24_000;
const scopes: readonly Scope[] = [
  { domain: "a.test", host: null },
  { domain: "a.test", host: "sub.a.test" },
  { domain: "b.test", host: null },
  { domain: null, host: null },
];

type Journaled = {
  readonly seq: number;
  readonly id: string;
  readonly scope: Scope;
  readonly patterns: readonly Pattern[];
  readonly order: Order;
};

export class Walk implements AsyncDisposable {
  now = 0;
  upheavals = 0;
  release = 1;
  readonly bugs: Bugs;
  readonly oracle = new Oracle();
  readonly visitors = new Visitors(this);
  readonly #options: WalkOptions;
  readonly #disk: ModelDisk;
  readonly #timers = new VirtualTimers();
  #facts: IndexFacts = { epoch: "e1", clearSeq: 0, clearNo: 0, opening: null };
  #agent: ModelAgent | undefined;
  #journal: Journaled[] = [];
  /** Given to the agent and not yet receipted. */
  #journaled: { readonly seq: number; isApplied: boolean } | undefined;
  /** Given, one after the other, and not acknowledged. */
  #clearing: { readonly order: Order; readonly scope: Scope }[] = [];
  #copies: string[] = [];
  #clears = 0;
  /** How often everything was lost, clears with it; and how often it had been when a clear was acknowledged. */
  #losses = 0;
  readonly #inForce = new Map<Order, number>();
  #broken: string | undefined;
  #synced: ReturnType<ModelDisk["walPlace"]>;
  #syncedAt = 0;

  constructor(options: WalkOptions) {
    this.#options = options;
    this.bugs = options.bugs;
    rmSync(join(options.directory, "index.db"), { force: true });
    for (const suffix of ["-wal", "-shm"])
      rmSync(join(options.directory, `index.db${suffix}`), { force: true });
    this.#disk = new ModelDisk(options.directory);
    this.#synced = this.#disk.walPlace();
  }

  get agent(): ModelAgent {
    if (this.#agent === undefined) throw new Error("the agent is not running");
    return this.#agent;
  }

  get keeps(): boolean {
    return !this.#options.isSmall;
  }

  /** A FULL commit has ended. */
  onSynced(): void {
    this.#synced = this.#disk.walPlace();
    this.#syncedAt = this.now;
  }

  async start(): Promise<void> {
    const { directory, isSmall, bugs } = this.#options;
    if (bugs.trustsAnyCopy === true) this.#believeTheFile();
    this.#agent = new ModelAgent({
      directory,
      diskMax: isSmall ? cramped : roomy,
      facts: () => this.#facts,
      note: (changes) => {
        this.#facts = { ...this.#facts, ...changes };
      },
      events: {
        opened: (opening) => (this.#facts = { ...this.#facts, opening }),
        dropped: () => this.#lose(),
        widened: ({ domain, host }) => {
          const current = this.#clearing[0];
          current?.order.widen((page) => inScope({ domain, host }, page));
          this.oracle.forget(({ page }) => inScope({ domain, host }, page));
        },
        unverified: (left) => {
          if (left > 0) this.#broken = "the proof of a clear found what it had left";
        },
      },
    });
    await this.agent.opened();
    this.#feed();
    await settled();
  }

  async take([name, a, b, c]: Step): Promise<void> {
    this.now++;
    await this.#act(name, a, b, c);
    await settled();
    if (this.agent.thread.keeper.index === undefined) await this.agent.opened();
    this.visitors.judge();
    if (this.#broken !== undefined) throw new Violation(this.#broken);
  }

  async #act(name: StepName, a: number, b: number, c: number): Promise<void> {
    const { visitors, agent } = this;
    switch (name) {
      case "fill":
        return visitors.fill(a, b, c);
      case "code":
        return visitors.code(a, b, c);
      case "startFetch":
        return visitors.startFetch(a, b, c);
      case "readSource":
        return visitors.readSource(a, c);
      case "finishFetch":
        return visitors.finishFetch(a, c);
      case "lookUp":
        return visitors.lookUp(a, b, c, false);
      case "hold":
        return visitors.lookUp(a, b, c, true);
      case "send":
        return visitors.send(a);
      case "startRefresh":
        return visitors.startRevision("refresh", a, b, c);
      case "startVariant":
        return visitors.startRevision("variant", a, b, c);
      case "finishRevision":
        return visitors.finishRevision(a);
      case "deliver": {
        const { inboxes } = agent;
        const port = inboxes[a % inboxes.length];
        if (port !== undefined) agent.deliver(port);
        return;
      }
      case "turn":
        return this.#timers.turn();
      case "rush":
        return this.#rush();
      case "deadlines":
        return this.#timers.pass();
      case "matchRead":
      case "matchAnswer":
      case "matchFail":
        return this.#match(name, a);
      default:
        return this.#actOnState(name, a, b, c);
    }
  }

  /** Whatever waits for nobody but the threads, in its order. */
  async #rush(): Promise<void> {
    for (let quiet = 0; quiet < 2;) {
      const [port] = this.agent.inboxes;
      const isQuiet = port === undefined && this.#timers.immediates === 0;
      if (port !== undefined) this.agent.deliver(port);
      else this.#timers.turn();
      quiet = isQuiet ? quiet + 1 : 0;
      await settled();
      if (this.agent.thread.keeper.index === undefined) return;
    }
  }

  async #actOnState(name: StepName, a: number, b: number, c: number): Promise<void> {
    switch (name) {
      case "clear":
        return this.#clear(a, b, c);
      case "order":
        return this.#order(a, b, c);
      case "receipt":
        return this.#receipt();
      case "unlink":
        return this.#unlink(a);
      case "invalidate":
        return this.#invalidate(a, b);
      case "activate":
        this.release++;
        return this.oracle.forget(({ page }) => page.kind === "static");
      case "copy":
        this.#copies = [...this.#copies.slice(-2), this.#disk.keep()];
        return;
      case "drop":
        return void this.agent.thread.keeper.drop("damaged");
      case "replaceThread":
        this.upheavals++;
        return this.agent.replaceThread();
      default:
        return this.#endProcess(name, a, b);
    }
  }

  async #endProcess(how: StepName, a: number, b: number): Promise<void> {
    const lost =
      how === "powerLoss"
        ? this.#disk.keepAfterPowerLoss(this.#synced, (below) => a % below)
        : undefined;
    const copy = how === "putBack" ? this.#copies[a % Math.max(1, this.#copies.length)] : undefined;
    await this.agent.end(how === "stop");
    this.visitors.end();
    this.oracle.end();
    this.#timers.forget();
    this.#clearing = [];
    this.#journaled = undefined;
    this.upheavals++;
    if (lost !== undefined) {
      this.#disk.putBack(lost);
      let bits = b;
      this.#disk.reboot((below) => (bits = (bits * 1_103_515_245 + 12_345) % 2 ** 31) % below);
      this.oracle.forget(({ at, isFile }) => isFile || at >= this.#syncedAt);
    }
    if (copy !== undefined) {
      this.#disk.putBack(copy);
      this.#lose();
    }
    await this.start();
  }

  #lose(): void {
    this.upheavals++;
    this.#losses++;
    this.oracle.forget(() => true);
  }

  #patterns(a: number, c: number): Pattern[] {
    return c % 4 === 0 ? [patternNo(a), patternNo(a * 7 + c)] : [patternNo(a)];
  }

  #clear(a: number, b: number, c: number): void {
    const scope = scopes[b % scopes.length] ?? { domain: null, host: null };
    const patterns = this.#patterns(a, c);
    const order = new Order(
      (page, mime) => inScope(scope, page) && patterns.some((pattern) => pattern.means(page, mime)),
    );
    this.#give(order, scope, `local-${++this.#clears}`, 0, patterns, () => undefined);
  }

  /** Central's journal has one more; the agent is told when those before are receipted. */
  #order(a: number, b: number, c: number): void {
    const scope = scopes[b % 3] ?? { domain: null, host: null };
    const patterns = this.#patterns(a, c);
    const order = new Order(
      (page, mime) => inScope(scope, page) && patterns.some((pattern) => pattern.means(page, mime)),
    );
    const seq = this.#journal.length + 1;
    this.#journal.push({ seq, id: `order-${seq}`, scope, patterns, order });
    this.#feed();
  }

  #feed(): void {
    if (this.#journaled !== undefined) return;
    const next = this.#journal[this.#facts.clearSeq];
    if (next === undefined) return;
    const given = { seq: next.seq, isApplied: false };
    this.#journaled = given;
    this.#give(
      next.order,
      next.scope,
      next.id,
      next.seq,
      next.patterns,
      () => (given.isApplied = true),
    );
  }

  #receipt(): void {
    if (this.#journaled?.isApplied !== true) return;
    this.#facts = { ...this.#facts, clearSeq: this.#journaled.seq };
    this.#journaled = undefined;
    this.#feed();
  }

  #give(
    order: Order,
    scope: Scope,
    clearId: string,
    seq: number,
    patterns: readonly Pattern[],
    onApplied: () => void,
  ): void {
    const { agent } = this;
    const entry = { order, scope };
    // What is in force changes nothing when it is repeated.
    if (this.#inForce.get(order) !== this.#losses) this.oracle.give(order, this.now);
    this.#clearing.push(entry);
    const proof = agent.orders.clear({
      clearId,
      ...scope,
      seq,
      patterns: patterns.map(({ fts }) => fts),
    });
    const isOver = (): boolean => this.#agent !== agent;
    proof.applied.then(
      () => {
        if (isOver()) return;
        this.#clearing.splice(this.#clearing.indexOf(entry), 1);
        order.ack(this.now);
        this.#inForce.set(order, this.#losses);
        onApplied();
      },
      (error: unknown) => {
        if (!isOver()) this.#broken = `a clear failed: ${String(error)}`;
      },
    );
    proof.gone.catch(() => undefined);
  }

  #unlink(a: number): void {
    const { agent } = this;
    const host = a % 2 === 0 ? "sub.a.test" : null;
    const scope = { domain: host === null ? "b.test" : null, host };
    const order = new Order((page) => inScope(scope, page));
    const entry = { order, scope };
    this.oracle.give(order, this.now);
    if (this.bugs.unlinkForgets === true) return order.ack(this.now);
    this.#clearing.push(entry);
    agent.orders.drop(scope, "unlinked").then(
      () => {
        if (this.#agent !== agent) return;
        this.#clearing.splice(this.#clearing.indexOf(entry), 1);
        order.ack(this.now);
      },
      (error: unknown) => {
        if (this.#agent === agent) this.#broken = `a domain was not dropped: ${String(error)}`;
      },
    );
  }

  #invalidate(a: number, b: number): void {
    const page = pages[a % pages.length];
    const worker = this.agent.workers[b % 2];
    if (page?.kind !== "generated" || worker === undefined) return;
    const order = new Order((other) => other === page);
    this.oracle.give(order, this.now);
    const { agent } = this;
    worker.cache.invalidate(keyOf(page)).then(
      () => this.#agent === agent && order.ack(this.now),
      () => undefined, // The visitor is told that it may have failed.
    );
  }

  #match(name: "matchRead" | "matchAnswer" | "matchFail", a: number): void {
    const { thread } = this.agent;
    const question = thread.questions[a % Math.max(1, thread.questions.length)];
    if (question === undefined) return;
    if (name === "matchRead") return thread.read(question);
    if (name === "matchFail" && question.job.kind === "match" && question.job.olderThan === null)
      return thread.answer(question, {
        kind: "failed",
        reason: "over budget",
        damaged: false,
        overBudget: true,
      });
    if (question.answer !== undefined) thread.answer(question, question.answer);
  }

  /** Everything comes to its end; then all that must be there is there, and index and files agree. */
  async finish(): Promise<void> {
    for (let quiet = 0; quiet < 3;) {
      const { thread, inboxes } = this.agent;
      const [question] = thread.questions;
      const before = this.now;
      if (question !== undefined) {
        await this.take(["matchRead", 0, 0, 0]);
        await this.take(["matchAnswer", 0, 0, 0]);
      } else if (inboxes.length > 0) await this.take(["deliver", 0, 0, 0]);
      else if (this.#timers.immediates > 0) await this.take(["turn", 0, 0, 0]);
      else if (this.#journaled?.isApplied === true) await this.take(["receipt", 0, 0, 0]);
      quiet = this.now === before ? quiet + 1 : 0;
      if (before > 1_000_000) throw new Violation("it never comes to rest");
      await settled();
    }
    if (this.#clearing.length > 0) throw new Violation("a clear was never acknowledged");
    for (const { no } of pages) for (const c of [0, 1]) await this.take(["lookUp", no, no + c, c]);
    const checked = this.agent.thread.check(this.#disk.directory);
    const problems =
      checked.kind === "checked"
        ? checked.problems.filter((line) => !line.includes("bodies are missing"))
        : [JSON.stringify(checked)];
    if (problems.length > 0) throw new Violation(`the index is not whole: ${problems.join("; ")}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const agent = this.#agent;
    this.#agent = undefined;
    await agent?.end(true);
    await settled();
    this.#timers[Symbol.dispose]();
  }

  /** As if agent.db remembered nothing that could contradict. */
  #believeTheFile(): void {
    try {
      const db = openSqlite(join(this.#options.directory, "index.db"), { sync: "normal" });
      const opening = db.prepare<[], string>("SELECT id FROM opening").pluck().get() ?? null;
      db.close();
      this.#facts = { ...this.#facts, opening, clearNo: 0, clearSeq: 0 };
    } catch {
      // There is none yet.
    }
  }
}
