// An edge whose cache is damaged by the test: an origin that says how new each answer is, visits that must be answered whatever lies on disk, clears
// given on the host, and what the agent says of its state.

import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect } from "vitest";
import { callControl } from "../../src/base/control-socket.ts";
import { openSqlite } from "../../src/base/sqlite.ts";
import { CustomerScript, domain } from "./customer-script.ts";
import { Edge } from "./edge.ts";
import { until } from "./until.ts";

const pageCount = 24;
/** Every other body is a file. */
const bytesOf = (no: number): number => (no % 2 === 0 ? 500 : 50_000);
const paths = Array.from({ length: pageCount }, (_, no) => `/damage/p${no}`);

export class DamageRig implements AsyncDisposable {
  readonly edge: Edge;
  readonly cache: string;
  /** What the origin answers now. */
  generation = 1;
  /** The answers that visitors got, of `visitAll`. */
  visits = 0;
  siteId = 0;
  readonly #origin;
  readonly #undo: (() => void)[] = [];

  private constructor(edge: Edge) {
    this.edge = edge;
    this.cache = join(edge.dir, "agent/cache");
    this.#origin = createServer((incoming, response) => {
      const no = Number(incoming.url?.split("p").at(-1));
      const body = `${this.generation} `.padEnd(bytesOf(no), ".");
      response.writeHead(200, {
        "content-type": "text/html",
        "content-length": body.length,
        "cache-control": "public, max-age=3600",
      });
      response.end(body);
    });
  }

  /** `beforeStart`: what is done to the state directory before the agent first sees it. `prefix`: a command that runs the agent. */
  static async start(
    beforeStart: (rig: DamageRig) => void = () => undefined,
    prefix?: readonly string[],
  ): Promise<DamageRig> {
    const rig = new DamageRig(await Edge.prepare());
    try {
      await rig.#prepare(beforeStart, prefix);
      return rig;
    } catch (error) {
      await rig[Symbol.asyncDispose]();
      throw error;
    }
  }

  async #prepare(
    beforeStart: (rig: DamageRig) => void,
    prefix: readonly string[] | undefined,
  ): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#origin.listen(0, "127.0.0.1", resolve);
    await promise;
    const { port } = this.#origin.address() as AddressInfo;
    await this.edge.startCentral();
    const script = new CustomerScript(this.edge, `http://127.0.0.1:${port}`, "damage");
    await script.enrol();
    this.siteId = script.siteId;
    beforeStart(this);
    await this.edge.startAgent(undefined, prefix);
    for (const { run } of script.steps().slice(0, 2)) await run();
  }

  /** `undo`: done before the directories of the edge are removed. */
  defer(undo: () => void): void {
    this.#undo.push(undo);
  }

  get index(): string {
    return join(this.cache, "index.db");
  }

  /** Every page, each answered; how many were hits. None may be older than `oldest`. */
  async visitAll(oldest = 0): Promise<number> {
    const answers = await Promise.all(paths.map((path) => this.edge.visit(path, { host: domain })));
    this.visits += answers.length;
    answers.forEach(({ status, body }, no) => {
      expect({ path: paths[no], status }).toEqual({ path: paths[no], status: 200 });
      expect(body.length).toBe(bytesOf(no));
      expect(Number(body.subarray(0, 20).toString().split(" ")[0])).toBeGreaterThanOrEqual(oldest);
    });
    return answers.filter(({ headers }) => String(headers["cache-status"]).includes("hit")).length;
  }

  /** When everything is served from the cache: it stores and serves as if nothing had been. */
  async filled(oldest = 0): Promise<void> {
    await until(
      "all pages are hits",
      async () => (await this.visitAll(oldest)) === pageCount,
      60_000,
    );
  }

  /** The site changes, and everything of it is cleared: from here on nothing older may be served. */
  async change(patterns: readonly string[] = ["path:damage"]): Promise<number> {
    const generation = ++this.generation;
    await this.control("cache-clear", { domain, patterns, dry_run: false });
    return generation;
  }

  async control(command: string, parameters: unknown = {}): Promise<unknown> {
    const path = join(this.edge.dir, "agent/control.sock");
    for await (const answer of callControl(path, command, parameters, AbortSignal.timeout(60_000)))
      return answer;
    throw new Error("no answer");
  }

  /** As `status --json` shows them. */
  async warnings(): Promise<readonly string[]> {
    const status = (await this.control("status")) as {
      warnings: readonly { code: string; text: string }[];
    };
    return status.warnings.map(({ code, text }) => `${code}: ${text}`);
  }

  /** `visit`: what goes on meanwhile. A warning ends with its cause, and a disk that is almost full takes one body and refuses the next. */
  warned(what: RegExp, visit?: () => Promise<unknown>): Promise<unknown> {
    return until(`the warning ${what.source}`, async () => {
      await visit?.();
      return (await this.warnings()).some((warning) => what.test(warning));
    });
  }

  tamper(sql: string): void {
    const db = openSqlite(this.index, { sync: "full" });
    db.exec(sql);
    db.close();
  }

  /** kill -9, whatever is done to what lies there, and the next start. */
  async restarted(meanwhile: () => void): Promise<void> {
    await this.edge.agent.kill();
    meanwhile();
    await this.edge.agent.restart();
  }

  /** The next clear starts another, which opens what lies there then. */
  killMatchers(): void {
    const tasks = `/proc/${this.edge.agent.pid}/task`;
    const children = readdirSync(tasks).flatMap((task) =>
      readFileSync(join(tasks, task, "children"), "utf8")
        .split(" ")
        .filter(Boolean)
        .map(Number),
    );
    for (const pid of children)
      if (readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("matcher"))
        process.kill(pid, "SIGKILL");
  }

  /** A damaged -shm file may have ended the process: then the service manager starts it again. */
  async isUp(): Promise<void> {
    if (this.edge.agent.ended) await this.edge.agent.restart();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const undo of this.#undo) undo();
    await this.edge[Symbol.asyncDispose]();
    const closed = Promise.withResolvers<void>();
    this.#origin.close(() => closed.resolve());
    this.#origin.closeAllConnections();
    await closed.promise;
  }
}
