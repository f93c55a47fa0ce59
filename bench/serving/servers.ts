// The servers under comparison, each as a process of its own on core 0: ours (the real agent behind a real central, one worker), nginx, and bare Node.

import { spawn, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CustomerScript } from "../../test/support/customer-script.ts";
import { Edge } from "../../test/support/edge.ts";
import { freePorts } from "../../test/support/free-ports.ts";
import { until } from "../../test/support/until.ts";
import type { Issued } from "../../test/support/x509.ts";
import { findVersion, PeerGround } from "../peers/peer.ts";
import { badAddress, fileBytes, host, openHost, tlsOriginHost, trustedProxy } from "./cases.ts";
import { Connection, type Target } from "./load.ts";
import type { OriginPorts } from "./origin.ts";

export type Certificate = Issued & { readonly chain: string };

export type Server = AsyncDisposable & {
  readonly name: string;
  /** Of the process whose children belong to it. */
  readonly pid: number;
  readonly http: number;
  readonly https: number;
  readonly http2: number;
};

export type Scene = {
  readonly origin: OriginPorts;
  readonly certificate: Certificate;
  /** A file that holds the authority. */
  readonly rootFile: string;
  /** Ranges of bad addresses beside the one that is asked from. */
  readonly badRanges: readonly string[];
};

/** The server's core; the visitors and the origin have the other one. */
export const pinned = ["taskset", "-c", "0"] as const;

/** Only keys that the agents of other checkouts know, too. */
const cache = { rules: [{ path: "/ruled/**", ttl_s: 3_600, cookies: { ignore: ["theme"] } }] };

export type OursOptions = {
  readonly name?: string;
  /** For the agent alone. */
  readonly env?: Readonly<Record<string, string>>;
  /** The agent of another checkout; undefined: of this one. */
  readonly tree?: string;
  /** Of the host's devlove. With them there is the open host, too. */
  readonly limits?: object;
};

export async function startOurs(
  { origin, certificate, rootFile, badRanges }: Scene,
  { env = {}, tree, name = "ours", limits }: OursOptions = {},
): Promise<Server & { readonly stop: () => Promise<void> }> {
  await using stack = new AsyncDisposableStack();
  const edge = stack.use(await Edge.prepare());
  const [https = 0] = await freePorts(1);
  await edge.startCentral();
  const originUrl = `http://127.0.0.1:${origin.plain}`;
  const script = new CustomerScript(edge, originUrl, "serve");
  await script.enrol();
  const views = join(edge.dir, "views");
  mkdirSync(join(views, "files"), { recursive: true });
  for (const [name, bytes] of Object.entries(fileBytes))
    writeFileSync(join(views, "files", name), randomBytes(bytes));
  const devlove = join(edge.dir, "devlove.json");
  const site = { backend: { urls: [originUrl] }, cache, ...(limits !== undefined && { limits }) };
  writeFileSync(devlove, JSON.stringify({ domains: { [host]: site } }));
  edge.changeAgentSettings({
    sites: [{ domain: host, views_dir: views, devlove_file: devlove }],
    accelerator: {
      listen: `127.0.0.1:${edge.ports.visitors}`,
      tls_listen: `127.0.0.1:${https}`,
      workers: 1,
      trusted_proxies: [trustedProxy],
    },
  });
  const before = { ...process.env };
  Object.assign(process.env, env, { NODE_EXTRA_CA_CERTS: rootFile });
  await edge.startAgent(tree === undefined ? undefined : join(tree, "src/main.ts"), pinned);
  for (const name of [...Object.keys(env), "NODE_EXTRA_CA_CERTS"]) {
    if (before[name] === undefined) delete process.env[name];
    else process.env[name] = before[name];
  }
  await prepareOurs(edge, script, {
    certificate,
    badRanges,
    further: {
      [tlsOriginHost]: { backend: { urls: [`https://localhost:${origin.tls}`] } },
      ...(limits !== undefined && { [openHost]: { backend: { urls: [originUrl] }, cache } }),
    },
  });
  const held = stack.move();
  const http = edge.ports.visitors;
  return {
    name,
    pid: edge.agent.pid,
    http,
    https,
    http2: https,
    stop: async () => void (await edge.agent.terminate()),
    [Symbol.asyncDispose]: async () => held.disposeAsync(),
  };
}

type Prepared = {
  readonly certificate: Certificate;
  readonly badRanges: readonly string[];
  /** The devloves of further domains. */
  readonly further: Readonly<Record<string, object>>;
};

/** What a customer does: domains, the site's files as a viewset, a certificate, bad addresses. */
async function prepareOurs(
  edge: Edge,
  script: CustomerScript,
  { certificate, badRanges, further }: Prepared,
): Promise<void> {
  const { api } = edge;
  const done = async (call: Promise<{ readonly status: number; readonly body: unknown }>) => {
    const { status, body } = await call;
    if (status >= 300) throw new Error(`${status} ${JSON.stringify(body)}`);
    return body;
  };
  const id = script.siteId;
  const domains = [host, ...Object.keys(further)];
  for (const name of domains) await done(api.post("/domain/", { name, deployment_site_id: id }));
  await done(api.post(`/import-viewset/${host}/${id}/site/`, {}));
  await until("the import", async () => {
    const body = (await done(api.get(`/import-viewset/${host}/${id}/site/`))) as {
      readonly status: string;
    };
    if (body.status === "failed") throw new Error(JSON.stringify(body));
    return body.status !== "started";
  });
  for (const [domain, site] of Object.entries(further)) {
    const content = JSON.stringify({ domains: { [domain]: site } });
    await done(api.post(`/${domain}/devlove/first/`, { schema: "devlove/1", content }));
  }
  for (const domain of domains) {
    const versions = (await done(api.get(`/active-viewset/${domain}/`))) as readonly {
      readonly id: number;
    }[];
    await done(api.put(`/active-viewset/${domain}/${versions[0]?.id}/`, {}));
  }
  const { name16 } = (await done(api.get(`/deployment-site/${id}/`))) as {
    readonly name16: string;
  };
  const { chain, key } = certificate;
  await done(api.post(`/upload/certificates/${name16}/`, { certificate: chain, private_key: key }));
  for (const range of [badAddress, ...badRanges]) {
    const text = range.replace("/", "_");
    for (const domain of domains.filter((name) => name !== tlsOriginHost)) {
      const place = { attach_to_bot: "Scraper", attach_to_domain: domain };
      await done(api.post(`/mark-as-bad-bot/${text}/?wait=30`, place));
    }
  }
}

/** Undefined, with the reason, where it is not installed. */
export async function startNginx(scene: Scene): Promise<Server | { readonly missing: string }> {
  const found = findVersion(["nginx", "-v"], /nginx\/([\d.]+)/);
  if ("missing" in found) return { missing: "nginx is not installed" };
  await using stack = new AsyncDisposableStack();
  const ground = stack.use(await PeerGround.open(scene.origin.plain));
  const [https = 0] = await freePorts(1);
  ground.makeDir("site");
  const files = ground.makeDir("site/files");
  for (const [name, bytes] of Object.entries(fileBytes))
    writeFileSync(join(files, name), randomBytes(bytes));
  ground.writeText(scene.certificate.chain, "cert.pem");
  ground.writeText(scene.certificate.key, "key.pem");
  const config = ground.write("../serving/nginx.conf", "nginx.conf", {
    tls_port: String(https),
    tls_origin_port: String(scene.origin.tls),
    bad_ranges: scene.badRanges.map((range) => `${range} 1;`).join(" "),
  });
  await ground.run([...pinned, "nginx", "-p", ground.dir, "-c", config]);
  const held = stack.move();
  return {
    name: `nginx ${found.version}`,
    pid: ground.pid,
    http: ground.port,
    https,
    http2: https,
    [Symbol.asyncDispose]: async () => held.disposeAsync(),
  };
}

export async function startBare(scene: Scene, dir: string): Promise<Server> {
  const [key, cert] = [join(dir, "bare-key.pem"), join(dir, "bare-cert.pem")];
  writeFileSync(key, scene.certificate.key);
  writeFileSync(cert, scene.certificate.chain);
  const [command, ...rest] = [
    ...pinned,
    process.execPath,
    join(import.meta.dirname, "bare.ts"),
    key,
    cert,
  ];
  const child: ChildProcess = spawn(command, rest, { stdio: ["ignore", "pipe", "inherit"] });
  const [said] = (await once(child.stdout ?? child, "data")) as [Buffer]; // It says its ports first of all.
  const ports = JSON.parse(said.toString()) as Record<"plain" | "tls" | "http2", number>;
  return {
    name: "bare Node",
    pid: child.pid ?? 0,
    http: ports.plain,
    https: ports.tls,
    http2: ports.http2,
    async [Symbol.asyncDispose]() {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
  };
}

/** Waits until the server answers as expected, for what was prepared comes into force by and by. */
export async function answering(what: string, ask: () => Promise<void>): Promise<void> {
  await until(what, async () => {
    await ask();
    return true;
  });
}

export async function askOnce(
  target: Target,
  request: string | Buffer,
  status: number,
): Promise<void> {
  const connection = await Connection.open(target, status);
  try {
    await connection.ask(request);
  } finally {
    connection.close();
  }
}
