// Certificates end to end, with the real programs: uploaded at central, served by the agent by name, changed under load, kept without central; and private
// keys nowhere that anybody could read.

import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemCode } from "../../src/core/faults.ts";
import { CustomerScript, domain } from "../support/customer-script.ts";
import { browser, Edge } from "../support/edge.ts";
import { freePorts } from "../support/free-ports.ts";
import { startOrigin } from "../support/origin.ts";
import { fingerprintOf } from "../support/sealed-site.ts";
import { until } from "../support/until.ts";
import { makeAuthority, type Issued } from "../support/x509.ts";

const authority = makeAuthority();
type Leaf = Issued & { readonly chain: string };
const issue = (...names: readonly string[]): Leaf => authority.issue({ names });

let edge: Edge;
let origin: Awaited<ReturnType<typeof startOrigin>>;
let [tlsPort, name16, siteId] = [0, "", 0];
const leaves: Leaf[] = [];

beforeAll(async () => {
  [tlsPort = 0] = await freePorts(1);
  origin = await startOrigin();
  edge = await Edge.prepare();
  await edge.startCentral();
  const script = new CustomerScript(edge, origin.url, "certificates");
  await script.enrol();
  siteId = script.siteId;
  name16 = String(Object((await edge.api.get(`/deployment-site/${siteId}/`)).body).name16);
  edge.changeAgentSettings({
    log_level: "trace",
    accelerator: {
      listen: `127.0.0.1:${edge.ports.visitors}`,
      tls_listen: `127.0.0.1:${tlsPort}`,
      workers: 2,
    },
  });
  await edge.startAgent();
  for (const { run } of script.steps().slice(0, 2)) await run();
}, 400_000);
afterAll(async () => {
  await edge[Symbol.asyncDispose]();
  await origin[Symbol.asyncDispose]();
});

const path = (): string => `/upload/certificates/${name16}/`;

async function upload(leaf: Leaf): Promise<void> {
  leaves.push(leaf);
  const body = { certificate: leaf.chain, private_key: leaf.key };
  const { status } = await edge.api.post(path(), body);
  expect(status).toBe(200);
}

/** Undefined: it is no file, or is gone, as a segment of request records is when central has them. */
function contentOf(file: string): string | undefined {
  try {
    return statSync(file).isFile() ? readFileSync(file, "latin1") : undefined;
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

async function states(): Promise<readonly string[]> {
  return Object((await edge.api.get(path())).body).map((one: { state: string }) => one.state);
}

async function untilApplied(): Promise<void> {
  await until("receipted", async () => (await states()).every((state) => state === "applied"));
}

async function handshake(servername: string): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
  const socket = connect({ port: tlsPort, host: "127.0.0.1", servername, ca: authority.root.pem });
  socket.once("secureConnect", () => resolve(socket)).once("error", reject);
  return promise;
}

/** SHA-256 of the leaf that answers for a name to a client that trusts the authority. */
async function servedFor(servername: string): Promise<string> {
  const socket = await handshake(servername);
  try {
    return socket.getPeerX509Certificate()?.fingerprint256.replaceAll(":", "").toLowerCase() ?? "";
  } finally {
    socket.destroy();
  }
}

/** Status of a request over a connection that stays open. */
async function ask(socket: TLSSocket): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const closed = (): void => reject(new Error("the connection was closed"));
  let text = "";
  const read = (chunk: Buffer): void => {
    text += chunk.toString("latin1");
    if (text.includes("\r\n\r\n")) resolve(text.slice(9, 12));
  };
  socket.on("data", read).once("close", closed).once("error", reject);
  socket.write(`HEAD /page/1 HTTP/1.1\r\nhost: ${domain}\r\nuser-agent: ${browser}\r\n\r\n`);
  try {
    return await promise;
  } finally {
    socket.off("data", read).off("close", closed).off("error", reject);
  }
}

test("what is uploaded is served by name, exact before wildcard, and not to who asks for another", async () => {
  await expect(handshake(domain)).rejects.toThrow();
  const [exact, wild] = [issue(domain), issue("*.example.com", "example.com")];
  await upload(wild);
  await upload(exact);
  await untilApplied();
  expect(await servedFor(domain)).toBe(fingerprintOf(exact.pem));
  expect(await servedFor("img.example.com")).toBe(fingerprintOf(wild.pem));
  expect(await servedFor("example.com")).toBe(fingerprintOf(wild.pem));
  await expect(handshake("www.example.org")).rejects.toThrow();
});

test("50 reloads under load: no handshake fails, no connection is dropped, no older certificate comes back", async () => {
  const order = [await servedFor(domain)];
  const done = new AbortController();
  const counts = { handshakes: 0, requests: 0 };
  const visitor = async (): Promise<void> => {
    const held = await handshake(domain);
    for (let last = 0; !done.signal.aborted;) {
      const at = order.indexOf(await servedFor(domain));
      expect(at).toBeGreaterThanOrEqual(last);
      last = at;
      counts.handshakes += 1;
      expect(await ask(held)).toBe("200");
      counts.requests += 1;
    }
    held.destroy();
  };
  const visiting = Promise.all(Array.from({ length: 4 }, visitor));
  visiting.catch(() => undefined); // Met below.
  for (let no = 0; no < 50; no += 1) {
    const leaf = issue(domain);
    order.push(fingerprintOf(leaf.pem));
    await upload(leaf);
    await untilApplied();
    expect(await servedFor(domain)).toBe(fingerprintOf(leaf.pem));
  }
  done.abort();
  await visiting;
  expect(Math.min(counts.handshakes, counts.requests)).toBeGreaterThan(50);
}, 600_000);

test("a rotated secret16 reaches the agent while it runs and outlives its restart; one that is revoked at once does not", async () => {
  const before = await servedFor(domain);
  const keys = async () =>
    Object((await edge.api.get("/symenckeys/")).body).map(({ state }: { state: string }) => state);
  const addKey = async (): Promise<void> => {
    await edge.api.post("/symenckeys/", { deployment_site_id: siteId });
    await until("keys are receipted", async () =>
      (await keys()).every((one: string) => one === "applied"),
    );
    await untilApplied();
  };
  const file = readFileSync(join(edge.dir, "secret16"), "utf8");
  const rotated = await edge.api.post(`/deployment-site/${siteId}/rotate-secret/`, {});
  await until("it is told", async () => /secret16 was rotated/.test(edge.agent.said));
  expect(edge.agent.said).not.toContain(Object(rotated.body).secret16);
  // Sealed with the new secret.
  await addKey();
  expect(await servedFor(domain)).toBe(before);
  expect(readFileSync(join(edge.dir, "secret16"), "utf8")).toBe(file);
  await edge.agent.kill();
  await edge.agent.restart();
  await addKey();

  const revoked = await edge.api.post(`/deployment-site/${siteId}/rotate-secret/`, {
    grace_seconds: 0,
  });
  await until("it is refused", async () => /WRONG_SECRET16/.test(edge.agent.said));
  expect(await servedFor(domain)).toBe(before);
  expect(await edge.agent.terminate()).toBe(0);
  writeFileSync(join(edge.dir, "secret16"), Object(revoked.body).secret16);
  await edge.agent.restart();
  expect(await servedFor(domain)).toBe(before);
  await addKey();
}, 300_000);

test("1,000 certificates: all are served, and soon after a start without central", async () => {
  const many = Array.from({ length: 998 }, (_, no) => issue(`h${no}.example.net`));
  for (let at = 0; at < many.length; at += 8)
    await Promise.all(many.slice(at, at + 8).map(async (leaf) => upload(leaf)));
  await until("receipted", async () => (await states()).every((one) => one === "applied"), 180_000);
  const some = [0, 1, 31, 500, 997].map((no) => many[no] ?? many[0]);
  const check = async (): Promise<void> => {
    for (const leaf of some)
      if (leaf !== undefined) expect(await servedFor(leaf.subject)).toBe(fingerprintOf(leaf.pem));
  };
  await check();
  await edge.central.kill();
  await edge.agent.kill();
  const began = performance.now();
  await edge.agent.restart();
  const last = many.at(-1);
  if (last === undefined) throw new Error("no certificate");
  expect(await servedFor(last.subject)).toBe(fingerprintOf(last.pem));
  // 2 s on a machine of its own; this one runs other tests beside it.
  expect(performance.now() - began).toBeLessThan(60_000);
  await check();
  await edge.central.restart();
}, 600_000);

test("no private key in any log, file, answer or status; keys are readable for their owner alone", async () => {
  const canaries = leaves.map(({ key }) => key.split("\n")[1] ?? "");
  expect(canaries.every((line) => line.length === 64)).toBe(true);
  const status = await edge.api.get(path());
  expect(Object(status.body)).toHaveLength(1_000);
  const metrics = await (
    await fetch(`http://127.0.0.1:${edge.ports.metrics}/metrics/deployment`)
  ).text();
  expect(metrics).toMatch(/accel_agent_certificates\{state="valid"\} 1000/);
  const page = await (await fetch(`http://127.0.0.1:${edge.ports.metrics}/`)).text();
  const places = new Map<string, string>([
    ["the agent's log", edge.agent.said],
    ["central's log", edge.central.said],
    ["answers", JSON.stringify([status.body, (await edge.api.get("/symenckeys/")).body])],
    ["metrics and status page", metrics + page],
  ]);
  for (const directory of ["agent", "central"])
    for (const name of readdirSync(join(edge.dir, directory), {
      recursive: true,
      encoding: "utf8",
    })) {
      const file = join(edge.dir, directory, name);
      const text = contentOf(file);
      if (text !== undefined) places.set(file, text);
    }
  const vault = join(edge.dir, "agent", "vault");
  const names = readdirSync(vault).toSorted();
  expect(names).toEqual([expect.stringMatching(/^certificates-/), "keys.json", "tickets.json"]);
  for (const name of names) expect(statSync(join(vault, name)).mode & 0o777).toBe(0o600);
  expect(statSync(vault).mode & 0o777).toBe(0o700);
  const { keys } = JSON.parse(readFileSync(join(vault, "keys.json"), "utf8"));
  const opened = keys.map(({ key }: { key: string }) => key);
  expect(opened).toHaveLength(4);
  for (const [place, text] of places) {
    for (const canary of canaries) expect(text.includes(canary), place).toBe(false);
    if (!place.endsWith("keys.json"))
      for (const key of opened) expect(text.includes(key), place).toBe(false);
  }
}, 180_000);

test("a deleted site leaves neither keys nor certificates on the host", async () => {
  expect((await edge.api.delete(`/deployment-site/${siteId}/`)).status).toBe(204);
  const vault = join(edge.dir, "agent", "vault");
  // Central was away for a while in the tests before: the agent comes back by its backoff.
  const isForgotten = (): boolean => readdirSync(vault).join() === "tickets.json";
  await until("forgotten", isForgotten, 150_000);
  await expect(handshake(domain)).rejects.toThrow();
}, 300_000);
