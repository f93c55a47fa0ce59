// Pebble, the ACME server of Let's Encrypt for tests, with a DNS server that it believes: as Debian's package has both.

import { spawn, spawnSync, execFileSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { freePorts } from "./free-ports.ts";
import { tempDir } from "./temp-dir.ts";
import { until } from "./until.ts";

/** For names of tests: what installs it where it is missing. */
export const pebbleHint = "needs pebble: apt-get install pebble";
export const isPebbleMissing = ["pebble", "pebble-challtestsrv"].some(
  (name) => spawnSync("which", [name]).status !== 0,
);

export type PebbleOptions = {
  /** The port at which it looks for challenges. */
  readonly httpPort: number;
  /** The life of the certificates that it issues. */
  readonly validityS?: number;
  /** Of a hundred good nonces, so many are refused. */
  readonly noncesRefused?: number;
  readonly needsExternalAccounts?: boolean;
  /** Names that it issues no certificate for. */
  readonly blocked?: readonly string[];
};

const startWithinMs = 60_000;

export class Pebble implements AsyncDisposable {
  /** The URL of its directory. */
  readonly directory: string;
  /** What certifies it, as a file and as PEM. */
  readonly caFile: string;
  readonly ca: string;
  /** `address:port` of the DNS server. */
  readonly dns: string;
  readonly #management: number;
  readonly #dnsManagement: number;
  readonly #options: PebbleOptions;
  readonly #dir = tempDir();
  readonly #ports: readonly number[];
  #pebble: ChildProcess | undefined;
  #dnsServer: ChildProcess | undefined;
  #said = "";

  private constructor(options: PebbleOptions, ports: readonly number[]) {
    const [acme = 0, management = 0, dns = 0, dnsManagement = 0] = ports;
    this.#options = options;
    this.#ports = ports;
    this.#management = management;
    this.#dnsManagement = dnsManagement;
    this.directory = `https://127.0.0.1:${acme}/dir`;
    this.dns = `127.0.0.1:${dns}`;
    const { path } = this.#dir;
    this.caFile = join(path, "pebble.pem");
    const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    const names = ["-subj", "/CN=pebble", "-addext", "subjectAltName=IP:127.0.0.1"];
    const files = ["-keyout", join(path, "pebble.key"), "-out", this.caFile];
    execFileSync("openssl", ["req", "-x509", ...key, ...files, "-days", "30", ...names], {
      stdio: "pipe",
    });
    this.ca = readFileSync(this.caFile, "utf8");
  }

  static async start(options: PebbleOptions): Promise<Pebble> {
    const pebble = new Pebble(options, await freePorts(4));
    await pebble.#startDns();
    await pebble.startDirectory();
    return pebble;
  }

  /** What it said last. */
  get said(): string {
    return this.#said;
  }

  /** Starts the directory, which forgets everything at its end. */
  async startDirectory(): Promise<void> {
    const [acme = 0, management = 0] = this.#ports;
    const { httpPort, validityS = 7_776_000, noncesRefused = 5, blocked = [] } = this.#options;
    const config = join(this.#dir.path, "pebble.json");
    const pebble = {
      listenAddress: `127.0.0.1:${acme}`,
      managementListenAddress: `127.0.0.1:${management}`,
      certificate: this.caFile,
      privateKey: join(this.#dir.path, "pebble.key"),
      httpPort,
      tlsPort: httpPort + 1,
      ocspResponderURL: "",
      externalAccountBindingRequired: this.#options.needsExternalAccounts ?? false,
      externalAccountMACKeys: {
        "kid-1": "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W",
      },
      domainBlocklist: blocked,
      certificateValidityPeriod: validityS,
    };
    writeFileSync(config, JSON.stringify({ pebble }));
    const env = {
      ...process.env,
      PEBBLE_WFE_NONCEREJECT: String(noncesRefused),
      PEBBLE_VA_NOSLEEP: "1",
      PEBBLE_AUTHZREUSE: "0",
    };
    const args = ["-config", config, "-dnsserver", this.dns];
    this.#pebble = this.#run("pebble", args, env);
    await until("pebble answers", async () => this.#isUp(this.directory), startWithinMs);
  }

  async stopDirectory(): Promise<void> {
    await end(this.#pebble);
  }

  async #startDns(): Promise<void> {
    const off = ["-http01", "", "-https01", "", "-tlsalpn01", "", "-defaultIPv6", ""];
    const at = ["-dns01", this.dns, "-management", `127.0.0.1:${this.#dnsManagement}`];
    this.#dnsServer = this.#run("pebble-challtestsrv", [...off, ...at], process.env);
    await until("the DNS server answers", async () => this.#isDnsUp(), startWithinMs);
  }

  /** Says where a host leads. */
  async leads(host: string, ...addresses: readonly string[]): Promise<void> {
    await this.#tellDns("/clear-a", { host });
    if (addresses.length > 0) await this.#tellDns("/add-a", { host, addresses });
  }

  /** The authority of the certificates that it issues, as PEM. */
  async root(): Promise<string> {
    return this.#get(`https://127.0.0.1:${this.#management}/roots/0`);
  }

  #run(command: string, args: readonly string[], env: NodeJS.ProcessEnv): ChildProcess {
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], env });
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => {
        this.#said = (this.#said + chunk.toString()).slice(-100_000);
      });
    return child;
  }

  async #isUp(url: string): Promise<boolean> {
    return this.#get(url).then(
      () => true,
      () => false,
    );
  }

  async #isDnsUp(): Promise<boolean> {
    return this.leads("up.example.com", "127.0.0.1").then(
      () => true,
      () => false,
    );
  }

  async #tellDns(path: string, what: unknown): Promise<void> {
    const url = `http://127.0.0.1:${this.#dnsManagement}${path}`;
    const { status } = await fetch(url, { method: "POST", body: JSON.stringify(what) });
    if (status !== 200) throw new Error(`the DNS server answers ${status}`);
  }

  async #get(url: string): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    request(url, { ca: this.ca, agent: false, timeout: 10_000 }, (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => (text += chunk.toString()));
      response.on("end", () => resolve(text));
      response.on("error", reject);
    })
      .on("error", reject)
      .end();
    return promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await end(this.#pebble);
    await end(this.#dnsServer);
    this.#dir[Symbol.dispose]();
  }
}

async function end(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}
