// No secret ever reaches a log: both programs at level trace through a whole run with errors, their output searched for every secret that was planted
// in it or seen on the wire.

import { readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { CustomerScript, domain } from "../support/customer-script.ts";
import { Edge } from "../support/edge.ts";
import { startOrigin } from "../support/origin.ts";
import { Program } from "../support/process.ts";
import { startRecordingProxy } from "../support/recording-proxy.ts";
import { until } from "../support/until.ts";

/** Long and odd enough to be found, and found nowhere else. */
const planted = (what: string): string => `cAnArY${what}0123456789abcdefXyZ`;

const visitorSecrets = {
  authorization: `Bearer ${planted("Bearer")}`,
  cookie: `session=${planted("Cookie")}`,
  "proxy-authorization": `Basic ${planted("Basic")}`,
  "x-api-key": planted("ApiKey"),
};
const query = `?access_token=${planted("Query")}&password=${planted("Password")}`;

/** Visitors that succeed, fail, and are not understood at all. */
async function visitAll(edge: Edge): Promise<void> {
  const headers = visitorSecrets;
  for (const path of [`/page/1${query}`, `/private${query}`, `/%ZZ${query}`]) {
    await edge.visit(path, { host: domain, headers });
    await edge.visit(path, { host: domain, headers, method: "POST", body: planted("Body") });
    await edge.visit(path, { host: "nobody.example.org", headers });
  }
  await edge.visit(`/page/1${query}`, { host: domain, headers, userAgent: undefined });
  const broken = connect(edge.ports.visitors, "127.0.0.1");
  broken.on("error", () => undefined);
  const ended = new Promise((resolve) => broken.once("close", resolve));
  broken.end(
    `GET /x${query} HTTP/9.9\r\nauthorization: ${visitorSecrets.authorization}\r\n: x\r\n\r\n`,
  );
  broken.resume();
  await ended;
}

/** A customer whose calls are refused in every way. */
async function askWrongly(edge: Edge): Promise<void> {
  const { api } = edge;
  const good = api.token;
  api.token = planted("CustomerToken");
  await api.get(`/domain/${query}`);
  api.token = good;
  const username = { username: "user", password: planted("UserPassword") };
  await api.post("/trial/", username);
  await api.post("/deployment-site/", { tags: 5, secret16: planted("Secret") });
  await api.get(`/no-such-place/${query}`);
  const base = `http://127.0.0.1:${edge.ports.central}`;
  const basic = Buffer.from(`0123456789abcdef:${planted("Basic16")}`).toString("base64");
  secrets.push(basic);
  for (const body of ["grant_type=client_credentials", planted("Grant")])
    await fetch(`${base}/agent-api/v1/token${query}`, {
      method: "POST",
      headers: { authorization: `Basic ${basic}`, date: new Date().toUTCString() },
      body,
    });
  for (const path of ["journal", "request-logs", "channel", "snapshot"])
    await fetch(`${base}/agent-api/v1/${path}${query}`, {
      headers: { authorization: `Bearer ${planted("AgentToken")}` },
    });
  await fetch(`${base}/presentation-api/v1/domain/`, {
    method: "POST",
    headers: { authorization: `Token ${good}`, "content-type": "application/json" },
    body: `{"password": "${planted("BrokenJson")}"`,
  });
}

const secrets: string[] = ["cAnArY"];

test("neither program says a secret, whatever goes wrong, at the level that says most", async () => {
  await using origin = await startOrigin();
  await using edge = await Edge.prepare();
  const centralYaml = join(edge.dir, "central.yaml");
  // Our own settings file, written by the line above.
  const settings = parse(readFileSync(centralYaml, "utf8")) as Record<string, unknown>;
  writeFileSync(centralYaml, stringify({ ...settings, log_level: "trace" }));
  await edge.startCentral();
  const script = new CustomerScript(edge, origin.url, "secrets");
  await script.enrol();
  await using proxy = await startRecordingProxy(edge.ports.central);
  edge.changeAgentSettings({
    log_level: "trace",
    central_url: `http://127.0.0.1:${proxy.port}`,
    logs: { canary_interval: "1s" },
  });
  const secret16 = readFileSync(join(edge.dir, "secret16"), "utf8").trim();
  await edge.startAgent();
  for (const { run } of script.steps().slice(0, 6)) await run();
  await visitAll(edge);
  await askWrongly(edge);

  // Central goes and comes back, the agent is told nonsense by its settings, its secret is wrong, and both end.
  await edge.central.kill();
  await visitAll(edge);
  await until("the agent noticed", () => /unreachable|cannot be delivered/.test(edge.agent.said));
  await edge.central.restart();
  await origin[Symbol.asyncDispose]();
  await visitAll(edge);
  const said = [edge.agent.said, edge.central.said];
  expect(await edge.agent.terminate()).toBe(0);
  const wrong = secret16.startsWith("f") ? "0" : "f";
  writeFileSync(join(edge.dir, "secret16"), `${wrong}${secret16.slice(1)}`);
  await edge.agent.restart();
  await until(
    "refused",
    () => edge.agent.said.includes("wrong_secret") || /secret/.test(edge.agent.said),
  );
  await edge.agent.terminate();
  writeFileSync(join(edge.dir, "secret16"), planted("NoSecret"));
  await using check = await Program.start([
    "agent",
    "check",
    "--config",
    join(edge.dir, "agent.yaml"),
  ]);
  await check.exited();
  await edge.central.terminate();
  said.push(edge.agent.said, edge.central.said, check.said);

  const wire = proxy.recorded();
  const tokens = [...wire.matchAll(/"access_token":"([^"]+)"/g)].map(([, token]) => token ?? "");
  const basics = [...wire.matchAll(/^authorization: Basic (\S+)/gim)].map(([, text]) => text ?? "");
  expect(tokens.length).toBeGreaterThan(0);
  expect(basics.length).toBeGreaterThan(0);
  const key = readFileSync(join(edge.dir, "central", "central.key"));
  secrets.push(secret16, edge.api.token, ...tokens, ...basics);
  secrets.push(key.toString("utf8").trim(), key.toString("hex"), key.toString("base64"));
  const text = said.join("\n");
  expect(text.length).toBeGreaterThan(10_000);
  for (const secret of secrets) {
    const at = text.indexOf(secret);
    const where = at < 0 ? "nowhere" : text.slice(Math.max(0, at - 300), at + 100);
    expect({ secret, where }).toEqual({ secret, where: "nowhere" });
  }
  // Whoever may read the state directory at all is its owner.
  for (const name of readdirSync(join(edge.dir, "agent", "spool")))
    expect(statSync(join(edge.dir, "agent", "spool", name)).mode & 0o077).toBe(0);
}, 400_000);
