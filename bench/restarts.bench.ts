// What visitors notice of hand-overs, restarts, upgrades and kills, on a Debian 12 that boots: 500 requests a second of new and of kept connections, by HTTP, HTTPS and HTTP/2.
// Beside it, in the same run: nginx, HAProxy and Caddy, reloaded and restarted as their packages do it, under the same visitors.
//
// Needs root, debootstrap, systemd-nspawn, binutils, nginx, haproxy and caddy, and reaches Debian's mirror.
//
//   npm run bench -- restarts [--rounds 10] [--per-second 500] [--only agent,nginx,haproxy,caddy]

import { execFileSync, spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, globSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { createCustomerClient } from "../src/client/customer-client.ts";
import { BootedDebian, bootedHint, bootedMissing } from "../test/support/booted.ts";
import { freePorts } from "../test/support/free-ports.ts";
import { OpenWebSockets } from "../test/support/open-web-sockets.ts";
import { SteadyVisitors, type VisitorCount } from "../test/support/steady-visitors.ts";
import { tempDir } from "../test/support/temp-dir.ts";
import { until } from "../test/support/until.ts";
import { echoes, UpgradeOrigin } from "../test/agent/accelerator/upgrades/upgrade-origin.ts";
import { makeAuthority } from "../test/support/x509.ts";

const domain = "www.example.test";
const body = "the site's own page\n";
const here = { host: "127.0.0.1", name: domain, path: "/", body };
const beforeMs = 2_000;
/** After a start the last of who waited must have come through. */
const afterMs = 6_000;

/** WebSockets that are open meanwhile, at the agent. */
const sockets = 20;

type Ports = { readonly port: number; readonly tlsPort: number };
type Leaf = { readonly chain: string; readonly key: string };
type Ended = VisitorCount & { readonly tookMs: number };

class Scene {
  readonly #say: (line: string) => void;
  readonly #rounds: number;
  readonly #perSecond: number;

  constructor(say: (line: string) => void, rounds: number, perSecond: number) {
    this.#say = say;
    this.#rounds = rounds;
    this.#perSecond = perSecond;
  }

  /** Does it so many times under visitors, and says what they met. */
  async measure(
    what: string,
    ports: Ports,
    action: (round: number) => Promise<void>,
    socketsCount = 0,
  ): Promise<void> {
    const ended: Ended[] = [];
    const socketEnds = new Map<string, number>();
    for (let round = 0; round < this.#rounds; round++) {
      const visitors = new SteadyVisitors({
        ...here,
        ...ports,
        perSecond: this.#perSecond,
      });
      const url = `ws://127.0.0.1:${ports.port}/socket`;
      const talking = await OpenWebSockets.open(url, domain, socketsCount);
      await sleep(beforeMs);
      const began = performance.now();
      await action(round);
      const tookMs = performance.now() - began;
      await sleep(afterMs);
      ended.push({ ...(await visitors.end()), tookMs });
      for (const [how, count] of Object.entries(talking.end()))
        socketEnds.set(how, (socketEnds.get(how) ?? 0) + count);
    }
    const sum = (of: (one: Ended) => number): number =>
      ended.reduce((all, one) => all + of(one), 0);
    const wrong = new Map<string, number>();
    for (const one of ended)
      for (const [name, count] of Object.entries(one.wrong))
        wrong.set(name, (wrong.get(name) ?? 0) + count);
    const waits = ended.map(({ longestMs }) => longestMs).toSorted((a, b) => a - b);
    const paused = (Math.max(...ended.map(({ pausedMs }) => pausedMs)) / 1_000).toFixed(2);
    const met = wrong.size === 0 ? "all answered" : JSON.stringify(Object.fromEntries(wrong));
    const [least, most] = [waits[0] ?? 0, waits.at(-1) ?? 0].map((ms) => (ms / 1_000).toFixed(2));
    const closed = [...socketEnds].map(([how, count]) => `${count} by ${how}`).join(", ");
    const ofSockets =
      socketsCount === 0
        ? ""
        : `; of ${socketsCount * this.#rounds} WebSockets ${closed === "" ? "none ended" : closed}`;
    this.#say(
      `${what.padEnd(28)} ${this.#rounds} times, ${sum(({ tookMs }) => tookMs / 1_000 / this.#rounds).toFixed(1)} s each: ${sum(({ sent }) => sent)} visitors, longest wait ${least} to ${most} s (their own pauses up to ${paused} s), ${sum(({ retried }) => retried)} asked again, ${met}${ofSockets}`,
    );
  }
}

export async function run(say: (line: string) => void, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: "string", default: "10" },
      "per-second": { type: "string", default: "500" },
      only: { type: "string", default: Object.keys(measured).join(",") },
    },
  });
  const scene = new Scene(say, Number(values.rounds), Number(values["per-second"]));
  using dir = tempDir();
  const leaf = makeAuthority().issue({ names: [domain] });
  for (const name of values.only.split(",")) {
    const measure = measured[name];
    if (measure === undefined) throw new Error(`--only takes ${Object.keys(measured).join(", ")}`);
    await measure(scene, dir.path, leaf);
  }
}

const measured: Readonly<Record<string, (scene: Scene, dir: string, leaf: Leaf) => Promise<void>>> =
  { agent: ofTheAgent, nginx: ofNginx, haproxy: ofHaproxy, caddy: ofCaddy };

async function ofTheAgent(scene: Scene, dir: string, leaf: Leaf): Promise<void> {
  if (bootedMissing) throw new Error(bootedHint);
  const versions = ["1.0.0", "1.1.0"];
  for (const version of versions)
    execFileSync(
      process.execPath,
      ["scripts/package.mjs", "--level", "none", "--version", version, "--out", join(dir, version)],
      { stdio: "ignore" },
    );
  await using origin = new UpgradeOrigin(createServer(), echoes);
  const backend = `http://127.0.0.1:${await origin.listen()}`;
  const [central = 0, port = 0, tlsPort = 0, metrics = 0] = await freePorts(4);
  const base = `http://127.0.0.1:${central}`;
  await using debian = await BootedDebian.boot(dir, (root) => {
    for (const version of versions)
      for (const name of globSync("*.deb", { cwd: join(dir, version) }))
        copyFileSync(join(dir, version, name), join(root, "root", name));
  });
  const install = (version: string): Promise<string> =>
    debian.must(
      `apt-get install -y --no-install-recommends --allow-downgrades /root/*_${version}_*.deb 2>&1`,
    );
  await debian.must("apt-get update 2>&1");
  await install("1.0.0");
  debian.write(
    "/etc/accel-central/central.yaml",
    `listen: 127.0.0.1:${central}\nbase_url: ${base}\n`,
  );
  await debian.must("systemctl enable --now accel-central");
  await debian.must("accel-central customer add Example");
  const added = await debian.must("accel-central user add anna --customer 1 --token");
  await debian.must("accel-central site add --user anna");
  const token = /^token +(\S+)$/m.exec(added)?.[1] ?? "";
  const [code = ""] = (await debian.must("accel-central site enrol 1")).split("\n");
  const client = createCustomerClient({ baseUrl: base, token });
  await client.createDomain(domain, { deploymentSiteId: 1 });
  const devlove = { domains: { [domain]: { views_dir: ".", backend: { urls: [backend] } } } };
  debian.write("/srv/www/index.html", body);
  debian.write("/srv/devlove.json", JSON.stringify(devlove));
  debian.write(
    "/etc/accel-agent/agent.yaml",
    `accelerator: { listen: 127.0.0.1:${port}, tls_listen: 127.0.0.1:${tlsPort}, default_domain: ${domain}, drain_grace: 4s }\nmetrics: { listen: 127.0.0.1:${metrics} }\nsites: [{ domain: ${domain}, views_dir: /srv/www, devlove_file: /srv/devlove.json }]\n`,
  );
  await debian.must(`cat | accel-agent join --central ${base}`, `${code}\n`);
  const { name16 } = await client.site(1);
  const uploaded = await fetch(`${base}/presentation-api/v1/upload/certificates/${name16}/`, {
    method: "POST",
    headers: { authorization: `Token ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ certificate: leaf.chain, private_key: leaf.key }),
  });
  if (!uploaded.ok) throw new Error(`the certificate: ${uploaded.status} ${await uploaded.text()}`);
  const ports = { port, tlsPort };
  await untilServed(ports);

  const pidNow = async (): Promise<string> =>
    (await debian.must("systemctl show -p MainPID --value accel-agent")).trim();
  await scene.measure(
    "accel-agent replace",
    ports,
    async () => {
      await debian.must("accel-agent replace");
    },
    sockets,
  );
  await scene.measure(
    "systemctl restart",
    ports,
    async () => {
      await debian.must("systemctl restart accel-agent");
    },
    sockets,
  );
  await scene.measure(
    "upgrade and back",
    ports,
    async (round) => {
      await install(versions[(round + 1) % 2] ?? "");
    },
    sockets,
  );
  await scene.measure(
    "kill -9 of the process",
    ports,
    async () => {
      const pid = await pidNow();
      await debian.must(`kill -KILL ${pid}`);
      await until("another one", async () => {
        const { out } = await debian.sh("systemctl is-active accel-agent");
        return out === "active\n" && (await pidNow()) !== pid;
      });
    },
    sockets,
  );
}

/** Until visitors of every kind are answered. */
async function untilServed(ports: Ports): Promise<void> {
  await until(
    "every kind of visitor is answered",
    async () => {
      const visitors = new SteadyVisitors({
        ...here,
        ...ports,
        perSecond: 50,
      });
      await sleep(300);
      const { sent, right } = await visitors.end();
      return sent > 5 && sent === right;
    },
    60_000,
  );
}

/** A peer's master process. */
class Peer {
  readonly #start: readonly [string, ...string[]];
  #child: ChildProcess | undefined;

  constructor(...start: readonly [string, ...string[]]) {
    this.#start = start;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  start(): void {
    const [command, ...args] = this.#start;
    this.#child = spawn(command, args, { stdio: "ignore" });
  }

  /** `signal`: the one by which it lets what is under way end. */
  async stop(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill(signal);
    await gone;
  }
}

async function ofNginx(scene: Scene, dir: string, { chain, key }: Leaf): Promise<void> {
  if (spawnSync("nginx", ["-v"]).error !== undefined) throw new Error("apt-get install nginx");
  const [port = 0, tlsPort = 0] = await freePorts(2);
  const at = (name: string): string => join(dir, name);
  writeFileSync(at("chain.pem"), chain);
  writeFileSync(at("key.pem"), key, { mode: 0o600 });
  writeFileSync(
    at("nginx.conf"),
    `daemon off; pid ${at("nginx.pid")}; error_log ${at("nginx.log")}; worker_processes 2;
events { worker_connections 4096; }
http {
  access_log off; ssl_certificate ${at("chain.pem")}; ssl_certificate_key ${at("key.pem")};
  server {
    listen 127.0.0.1:${port} backlog=4096; listen 127.0.0.1:${tlsPort} ssl http2 backlog=4096;
    location / { default_type text/html; return 200 "${body.replace("\n", "\\n")}"; }
  }
}
`,
  );
  const nginx = new Peer("nginx", "-p", dir, "-c", at("nginx.conf"));
  const ports = { port, tlsPort };
  nginx.start();
  try {
    await untilServed(ports);
    await scene.measure("nginx, reload", ports, async () => nginx.signal("SIGHUP"));
    await scene.measure("nginx, restart", ports, async () => {
      await nginx.stop("SIGQUIT");
      nginx.start();
    });
  } finally {
    await nginx.stop("SIGTERM");
  }
}

async function ofHaproxy(scene: Scene, dir: string, { chain, key }: Leaf): Promise<void> {
  if (spawnSync("haproxy", ["-v"]).error !== undefined) throw new Error("apt-get install haproxy");
  const [port = 0, tlsPort = 0] = await freePorts(2);
  const at = (name: string): string => join(dir, name);
  writeFileSync(at("both.pem"), chain + key, { mode: 0o600 });
  writeFileSync(
    at("haproxy.cfg"),
    `global
  nbthread 2
defaults
  mode http
  timeout client 60s
  timeout connect 5s
  timeout server 60s
frontend all
  bind 127.0.0.1:${port} backlog 4096
  bind 127.0.0.1:${tlsPort} ssl crt ${at("both.pem")} alpn h2,http/1.1 backlog 4096
  http-request return status 200 content-type text/html string "${body.replace("\n", "\\n").replace("'", "\\'")}"
`,
  );
  // Master and worker, as Debian's unit has it; a reload takes the sockets over.
  const haproxy = new Peer("haproxy", "-W", "-f", at("haproxy.cfg"));
  const ports = { port, tlsPort };
  haproxy.start();
  try {
    await untilServed(ports);
    await scene.measure("HAProxy, reload", ports, async () => {
      haproxy.signal("SIGUSR2");
    });
    await scene.measure("HAProxy, restart", ports, async () => {
      await haproxy.stop("SIGUSR1");
      haproxy.start();
    });
  } finally {
    await haproxy.stop("SIGTERM");
  }
}

async function ofCaddy(scene: Scene, dir: string, { chain, key }: Leaf): Promise<void> {
  if (spawnSync("caddy", ["version"]).error !== undefined) throw new Error("apt-get install caddy");
  const [port = 0, tlsPort = 0, admin = 0] = await freePorts(3);
  const at = (name: string): string => join(dir, name);
  writeFileSync(at("chain.pem"), chain);
  writeFileSync(at("key.pem"), key, { mode: 0o600 });
  const answer = `bind 127.0.0.1\n  header Content-Type text/html\n  respond "${body.trimEnd()}\n" 200`;
  writeFileSync(
    at("Caddyfile"),
    `{
  admin 127.0.0.1:${admin}
  auto_https off
}
http://${domain}:${port} {
  ${answer}
}
https://${domain}:${tlsPort} {
  tls ${at("chain.pem")} ${at("key.pem")}
  ${answer}
}
`,
  );
  const config = ["--config", at("Caddyfile"), "--adapter", "caddyfile"] as const;
  const caddy = new Peer(
    "env",
    `XDG_CONFIG_HOME=${dir}`,
    `XDG_DATA_HOME=${dir}`,
    "caddy",
    "run",
    ...config,
  );
  const ports = { port, tlsPort };
  caddy.start();
  try {
    await untilServed(ports);
    await scene.measure("Caddy, reload", ports, async () => {
      execFileSync("caddy", ["reload", "--force", ...config], { stdio: "ignore" });
    });
    await scene.measure("Caddy, restart", ports, async () => {
      await caddy.stop("SIGTERM");
      caddy.start();
    });
  } finally {
    await caddy.stop("SIGTERM");
  }
}
