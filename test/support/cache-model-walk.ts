// One walk of the model check: visitors, customer, central and fate act upon an agent in the order that the steps say, and whatever is served is
// judged by the oracle. A step is a name and three numbers, and means something in every state: so any part of a walk is a walk.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { openSqlite } from "../../src/base/sqlite.ts";
import { inScope } from "../../src/agent/cache/entry.ts";
import type { IndexFacts } from "../../src/agent/cache/index/opening.ts";
import { ModelAgent } from "./cache-model-agent.ts";
import { ModelDisk } from "./cache-model-disk.ts";
import { Customer, type CustomerBugs } from "./cache-model-customer.ts";
import { Oracle, Violation } from "./cache-model-oracle.ts";
import { settled, VirtualTimers } from "./cache-model-time.ts";
import type { Step, StepName } from "./cache-model-steps.ts";
import { Visitors } from "./cache-model-visitors.ts";
import { pages } from "./cache-model-words.ts";

export type Bugs = CustomerBugs & {
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
export class Walk implements AsyncDisposable {
  now = 0;
  upheavals = 0;
  release = 1;
  readonly bugs: Bugs;
  readonly oracle = new Oracle();
  readonly visitors = new Visitors(this);
  readonly #customer: Customer;
  readonly #options: WalkOptions;
  readonly #disk: ModelDisk;
  readonly #timers = new VirtualTimers();
  facts: IndexFacts = { epoch: "e1", clearSeq: 0, clearNo: 0, opening: null };
  #agent: ModelAgent | undefined;
  #copies: string[] = [];
  /** What went wrong where nobody could throw. */
  broken: string | undefined;
  #synced: ReturnType<ModelDisk["walPlace"]>;
  #syncedAt = 0;

  constructor(options: WalkOptions) {
    this.#options = options;
    this.bugs = options.bugs;
    this.#customer = new Customer(this);
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

  isOver(agent: ModelAgent): boolean {
    return this.#agent !== agent;
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
      clock: { nowS: () => this.now, elapsedMs: () => this.now, rest: () => undefined },
      facts: () => this.facts,
      note: (changes) => {
        this.facts = { ...this.facts, ...changes };
      },
      events: {
        opened: (opening) => (this.facts = { ...this.facts, opening }),
        dropped: () => this.#lose(),
        widened: ({ domain, host }) => {
          this.#customer.widen({ domain, host });
          this.oracle.forget(({ page }) => inScope({ domain, host }, page));
        },
        unverified: (left) => {
          if (left > 0) this.broken = "the proof of a clear found what it had left";
        },
      },
    });
    await this.agent.opened();
    this.#customer.feed();
    await settled();
  }

  async take([name, a, b, c]: Step): Promise<void> {
    this.now++;
    await this.#act(name, a, b, c);
    await settled();
    if (this.agent.thread.keeper.index === undefined) await this.agent.opened();
    this.visitors.fetches.judge();
    if (this.broken !== undefined) throw new Violation(this.broken);
  }

  async #act(name: StepName, a: number, b: number, c: number): Promise<void> {
    const { visitors, agent } = this;
    switch (name) {
      case "fill":
        return visitors.fetches.fill(a, b, c);
      case "code":
        return visitors.code(a, b, c);
      case "startFetch":
        return visitors.fetches.startFetch(a, b, c);
      case "readSource":
        return visitors.fetches.readSource(a, c);
      case "finishFetch":
        return visitors.fetches.finishFetch(a, c);
      case "lookUp":
        return visitors.lookUp(a, b, c, false);
      case "quick":
        return visitors.quick(a, b, c);
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
      case "soften":
        return this.#customer.clear(a, b, c, name === "soften");
      case "order":
        return this.#customer.order(a, b, c);
      case "note":
        return this.#customer.note();
      case "receipt":
        return this.#customer.receipt();
      case "unlink":
        return this.#customer.unlink(a);
      case "invalidate":
        return this.#customer.invalidate(a, b);
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
    this.#customer.end();
    this.upheavals++;
    if (lost !== undefined) {
      this.#disk.putBack(lost);
      let bits = b;
      this.#disk.reboot((below) => (bits = (bits * 1_103_515_245 + 12_345) % 2 ** 31) % below);
      this.oracle.forget(({ at, isFile }) => isFile || at >= this.#syncedAt);
    }
    if (copy !== undefined) {
      this.#disk.putBack(copy);
      this.#customer.forgive();
      this.#lose();
    }
    await this.start();
  }

  #lose(): void {
    this.upheavals++;
    this.#customer.losses++;
    this.oracle.forget(() => true);
  }

  #match(name: "matchRead" | "matchAnswer" | "matchFail", a: number): void {
    const { thread } = this.agent;
    const question = thread.questions[a % Math.max(1, thread.questions.length)];
    if (question === undefined) return;
    if (name === "matchRead") return thread.read(question);
    if (name === "matchFail" && question.job.kind === "match")
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
      else if (this.#customer.isReceiptDue) await this.take(["receipt", 0, 0, 0]);
      quiet = this.now === before ? quiet + 1 : 0;
      if (before > 1_000_000) throw new Violation("it never comes to rest");
      await settled();
    }
    if (this.#customer.isWaiting) throw new Violation("a clear was never acknowledged");
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
      this.facts = { ...this.facts, opening, clearNo: 0, clearSeq: 0 };
    } catch {
      // There is none yet.
    }
  }
}
