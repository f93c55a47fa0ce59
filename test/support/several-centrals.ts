// Several centrals as programs, with all that they share: a PostgreSQL for the store and for request logs, a bucket, a key.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import { bucketName } from "./bucket-rig.ts";
import { freePorts } from "./free-ports.ts";
import { objectsYaml } from "./objects-central.ts";
import { PostgresServer } from "./postgres-server.ts";
import { answers200, Program } from "./process.ts";
import { startS3Server, type S3Server } from "./s3-server.ts";
import { tempDir } from "./temp-dir.ts";

const database = "central";
const logDatabase = "logs";

export type OneCentral = { readonly url: string; readonly port: number; readonly program: Program };

export class SeveralCentrals implements AsyncDisposable {
  readonly server: PostgresServer;
  readonly bucket: S3Server;
  readonly dir: string;
  readonly #more: object;
  readonly #stack: AsyncDisposableStack;
  readonly all: OneCentral[] = [];
  #made = 0;

  private constructor(made: {
    readonly server: PostgresServer;
    readonly bucket: S3Server;
    readonly dir: string;
    readonly more: object;
    readonly stack: AsyncDisposableStack;
  }) {
    this.server = made.server;
    this.bucket = made.bucket;
    this.dir = made.dir;
    this.#more = made.more;
    this.#stack = made.stack;
  }

  /** `more`: further settings of each. */
  static async start(bin: string, count: number, more: object = {}): Promise<SeveralCentrals> {
    await using stack = new AsyncDisposableStack();
    const { path: dir } = stack.use(tempDir());
    const server = stack.use(await PostgresServer.start(bin, { isDurable: true }));
    for (const name of [database, logDatabase])
      await server.run("postgres", `CREATE DATABASE ${name} TEMPLATE template0`);
    const bucket = stack.use(await startS3Server(bucketName));
    writeFileSync(join(dir, "central.key"), `${"07".repeat(32)}\n`, { mode: 0o600 });
    const several = new SeveralCentrals({ server, bucket, dir, more, stack: stack.move() });
    try {
      for (let no = 0; no < count; no++) await several.add();
    } catch (error) {
      await several[Symbol.asyncDispose]();
      throw error;
    }
    return several;
  }

  /**
   * Starts another one, and returns when it is ready, or has ended. `user`: as whom it is at PostgreSQL; `main`: its program, if another one; `storeAt`: the directory of the
   * socket by which it has the store, if another one.
   */
  async add({
    user = "accel",
    main,
    storeAt,
  }: { user?: string; main?: string; storeAt?: string } = {}): Promise<OneCentral> {
    const no = this.#made++;
    const [port = 0] = await freePorts(1);
    const url = `http://127.0.0.1:${port}`;
    const stateDir = join(this.dir, `state-${no}`);
    mkdirSync(stateDir, { mode: 0o700 });
    const config = join(this.dir, `central-${no}.yaml`);
    const { host, port: serverPort } = this.server.place(database);
    const urlOf = (name: string, at = host): string =>
      `postgres://${user}@localhost:${serverPort}/${name}?host=${at}`;
    const settings = {
      listen: `127.0.0.1:${port}`,
      base_url: this.all[0]?.url ?? url,
      state_dir: stateDir,
      key_file: join(this.dir, "central.key"),
      trusted_proxies: ["127.0.0.1"],
      store: { url: urlOf(database, storeAt), instances: "many" },
      request_logs: { url: urlOf(logDatabase) },
      ...Object(parse(objectsYaml(this.dir, this.bucket.port))),
      ...this.#more,
    };
    writeFileSync(config, stringify(settings));
    const isReady = async (): Promise<boolean> => answers200(`${url}/readyz`);
    const program = this.#stack.use(
      await Program.start(["central", "serve", "--config", config], isReady, {}, undefined, main),
    );
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
