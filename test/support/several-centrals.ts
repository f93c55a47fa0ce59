// Several centrals as programs, with one PostgreSQL, one key, and one place for files that all of them reach.

import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import { freePorts } from "./free-ports.ts";
import { PostgresServer } from "./postgres-server.ts";
import { answers200, Program } from "./process.ts";
import { tempDir } from "./temp-dir.ts";

const main = join(import.meta.dirname, "central-instance.ts");
const database = "central";
/** What the centrals share beside the store. */
const sharedDirectories = ["blobs", "packages"];

export type OneCentral = { readonly url: string; readonly port: number; readonly program: Program };

export class SeveralCentrals implements AsyncDisposable {
  readonly server: PostgresServer;
  readonly dir: string;
  readonly #more: object;
  readonly #stack: AsyncDisposableStack;
  readonly all: OneCentral[] = [];

  private constructor(made: {
    readonly server: PostgresServer;
    readonly dir: string;
    readonly more: object;
    readonly stack: AsyncDisposableStack;
  }) {
    this.server = made.server;
    this.dir = made.dir;
    this.#more = made.more;
    this.#stack = made.stack;
  }

  /** `more`: further settings of each. */
  static async start(bin: string, count: number, more: object = {}): Promise<SeveralCentrals> {
    await using stack = new AsyncDisposableStack();
    const { path: dir } = stack.use(tempDir());
    const server = stack.use(await PostgresServer.start(bin, { isDurable: true }));
    await server.run("postgres", `CREATE DATABASE ${database} TEMPLATE template0`);
    writeFileSync(join(dir, "central.key"), `${"07".repeat(32)}\n`, { mode: 0o600 });
    for (const name of sharedDirectories) mkdirSync(join(dir, name));
    const several = new SeveralCentrals({ server, dir, more, stack: stack.move() });
    try {
      for (let no = 0; no < count; no++) await several.add();
    } catch (error) {
      await several[Symbol.asyncDispose]();
      throw error;
    }
    return several;
  }

  /** Starts another one. `user`: as whom it is at PostgreSQL. */
  async add(user = "accel"): Promise<OneCentral> {
    const no = this.all.length;
    const [port = 0] = await freePorts(1);
    const url = `http://127.0.0.1:${port}`;
    const stateDir = join(this.dir, `state-${no}`);
    mkdirSync(stateDir, { mode: 0o700 });
    for (const name of sharedDirectories) symlinkSync(join(this.dir, name), join(stateDir, name));
    const config = join(this.dir, `central-${no}.yaml`);
    const place = this.server.place(database);
    const settings = {
      listen: `127.0.0.1:${port}`,
      base_url: url,
      state_dir: stateDir,
      key_file: join(this.dir, "central.key"),
      trusted_proxies: ["127.0.0.1"],
      store: {
        url: `postgres://${user}@localhost:${place.port}/${database}?host=${place.host}`,
        instances: "many",
      },
      ...this.#more,
    };
    writeFileSync(config, stringify(settings));
    const isReady = async (): Promise<boolean> => answers200(`${url}/readyz`);
    const program = this.#stack.use(await Program.start([config], isReady, {}, 120_000, main));
    const one = { url, port, program };
    this.all.push(one);
    return one;
  }

  async run(...statements: readonly string[]): Promise<unknown[]> {
    return this.server.run(database, ...statements);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack[Symbol.asyncDispose]();
  }
}
