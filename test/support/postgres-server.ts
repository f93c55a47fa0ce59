// A PostgreSQL of the test's own: initialized in a temporary directory, run as a user without rights, stopped and started as the test asks, gone with the test.

import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  statfsSync,
  writeFileSync,
} from "node:fs";
import { freemem, tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import type { PostgresPlace } from "../../src/central/store/engine/postgres-place.ts";
import { freePorts } from "./free-ports.ts";
import { tempDir } from "./temp-dir.ts";
import { until } from "./until.ts";

const installed = "/usr/lib/postgresql";
const user = "accel";
/** The signals of `pg_ctl stop -m`: fast cuts off whoever is connected; immediate leaves the rest to recovery. */
const signals = { fast: "SIGINT", immediate: "SIGQUIT", kill: "SIGKILL" } as const;

/** The newest of Debian's packages; undefined where there is none. */
export function postgresBin(): string | undefined {
  if (!existsSync(installed)) return undefined;
  const versions = readdirSync(installed)
    .map(Number)
    .filter((version) => version >= 15);
  const newest = Math.max(...versions);
  return versions.length === 0 ? undefined : join(installed, String(newest), "bin");
}

export type ServerOptions = {
  /** Further settings, `name=value`. */
  readonly settings?: readonly string[];
  /** Files of the data directory, by name. */
  readonly files?: Readonly<Record<string, string>>;
  /** Whether commits survive a power failure; without that they are quicker. */
  readonly isDurable?: boolean;
  /** What `initdb` is told of texts. */
  readonly texts?: readonly string[];
};

export class PostgresServer implements AsyncDisposable {
  readonly #bin: string;
  readonly #data: string;
  readonly #as: { readonly uid: number; readonly gid: number } | undefined;
  readonly #settings: readonly string[];
  readonly #owned: AsyncDisposable;
  readonly port: number;
  #process: ChildProcess | undefined;

  private constructor(made: {
    readonly bin: string;
    readonly data: string;
    readonly as: { readonly uid: number; readonly gid: number } | undefined;
    readonly settings: readonly string[];
    readonly port: number;
    readonly owned: AsyncDisposable;
  }) {
    this.#bin = made.bin;
    this.#data = made.data;
    this.#as = made.as;
    this.#settings = made.settings;
    this.#owned = made.owned;
    this.port = made.port;
  }

  static async start(bin: string, options: ServerOptions = {}): Promise<PostgresServer> {
    const { settings = [], files = {}, isDurable = false } = options;
    const { texts = ["--locale=C", "--encoding=UTF8"] } = options;
    await using stack = new AsyncDisposableStack();
    const dir = stack.use(tempDir(isDurable ? tmpdir() : quickBase())).path;
    const data = join(dir, "data");
    mkdirSync(data, { mode: 0o700 });
    const as = ownerOf("postgres");
    if (as !== undefined) {
      chmodSync(dir, 0o755);
      chownSync(data, as.uid, as.gid);
    }
    const initial = ["--auth=trust", `--username=${user}`, ...texts, "--no-sync"];
    execFileSync(join(bin, "initdb"), ["-D", data, ...initial], { ...as, stdio: "pipe" });
    for (const [name, text] of Object.entries(files)) {
      writeFileSync(join(data, name), text, { mode: 0o600 });
      if (as !== undefined) chownSync(join(data, name), as.uid, as.gid);
    }
    const [port = 0] = await freePorts(1);
    const all = [`port=${port}`, "listen_addresses=127.0.0.1", "max_connections=200"];
    if (!isDurable) all.push("fsync=off", "full_page_writes=off");
    // Who waits for who waits for him is told as a failure of his test.
    all.push("idle_in_transaction_session_timeout=60s", "lock_timeout=60s", ...settings);
    const server = new PostgresServer({ bin, data, as, settings: all, port, owned: stack.move() });
    await server.begin();
    return server;
  }

  /** Starts a standby of this server that streams from it, with a copy of its data. `name`: what the primary knows it by. It is disposed of apart. */
  async standby(name: string): Promise<PostgresServer> {
    await using stack = new AsyncDisposableStack();
    const dir = stack.use(tempDir()).path;
    const data = join(dir, "data");
    mkdirSync(data, { mode: 0o700 });
    if (this.#as !== undefined) {
      chmodSync(dir, 0o755);
      chownSync(data, this.#as.uid, this.#as.gid);
    }
    const from = `host=127.0.0.1 port=${this.port} user=${user} application_name=${name}`;
    const how = ["--write-recovery-conf", "--checkpoint=fast", "--no-sync"];
    execFileSync(join(this.#bin, "pg_basebackup"), ["-D", data, "-d", from, ...how], {
      ...this.#as,
      stdio: "pipe",
    });
    const [port = 0] = await freePorts(1);
    const settings = this.#settings.filter((one) => !one.startsWith("port="));
    const all = [...settings, `port=${port}`];
    const owned = stack.move();
    const [bin, as] = [this.#bin, this.#as];
    const server = new PostgresServer({ bin, data, as, settings: all, port, owned });
    await server.begin();
    return server;
  }

  /** Of its first process; 0 while it is ended. */
  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  /** Of a standby: it receives nothing more. */
  async cutOff(): Promise<void> {
    await this.run("postgres", "ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()");
    await until("the standby is cut off", async () => {
      const rows = await this.run("postgres", "SELECT 1 FROM pg_stat_wal_receiver");
      return rows.length === 0;
    });
  }

  /** Of a standby: it takes writes, on another timeline. */
  async promote(): Promise<void> {
    await this.run("postgres", "SELECT pg_promote()");
  }

  /** How a database is reached: over the socket in the data directory, or over TCP. */
  place(database: string, more: Partial<PostgresPlace> = {}): PostgresPlace {
    const password = (): undefined => undefined;
    const own = { host: this.#data, port: this.port, database, user, password };
    return { ...own, tls: false, connections: 6, ...more };
  }

  client(database: string): pg.Client {
    const client = new pg.Client({ host: this.#data, port: this.port, user, database });
    client.on("error", () => undefined);
    return client;
  }

  /** Runs statements in a connection of their own. */
  async run(database: string, ...statements: readonly string[]): Promise<unknown[]> {
    const client = this.client(database);
    await client.connect();
    try {
      let rows: unknown[] = [];
      for (const statement of statements) ({ rows } = await client.query(statement));
      return rows;
    } finally {
      await client.end();
    }
  }

  /** Resolves when it answers. */
  async begin(): Promise<void> {
    const args = this.#settings.flatMap((setting) => ["-c", setting]);
    this.#process = spawn(
      join(this.#bin, "postgres"),
      ["-D", this.#data, "-k", this.#data, ...args],
      { ...this.#as, stdio: "ignore" },
    );
    await until("PostgreSQL answers", async () => this.run("postgres", "SELECT 1"));
  }

  /** Resolves when it is gone. */
  async end(mode: keyof typeof signals = "fast"): Promise<void> {
    const server = this.#process;
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
    const gone = once(server, "exit");
    server.kill(signals[mode]);
    await gone;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
    await this.#owned[Symbol.asyncDispose]();
  }
}

const memoryDirectory = "/dev/shm";
/** Some hundred databases, of 14 MB and 600 files each. */
const memoryLeast = 8 * 2 ** 30;

/** Where data lies that is to outlive nothing: removing it from a disk that others use takes minutes, and from memory seconds. */
function quickBase(): string {
  if (!existsSync(memoryDirectory) || freemem() < memoryLeast) return tmpdir();
  const { bavail, bsize } = statfsSync(memoryDirectory);
  return bavail * bsize < memoryLeast ? tmpdir() : memoryDirectory;
}

/** Root is refused by PostgreSQL. */
function ownerOf(name: string): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const id = (flag: string): number =>
    Number(execFileSync("id", [flag, name], { encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
}
