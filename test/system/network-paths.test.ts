// Ways between a host and central that are not the usual one: through a proxy with a password, with an authority of its own, by IPv6 alone.

import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { CentralThroughProxy, centralName } from "../support/central-through-proxy.ts";
import { CustomerScript, domain } from "../support/customer-script.ts";
import { Edge } from "../support/edge.ts";
import { startOrigin } from "../support/origin.ts";
import { mainFile, node } from "../support/process.ts";
import { until } from "../support/until.ts";

type Status = { readonly parts: { readonly link: { readonly state: string } } };

async function ran(edge: Edge, env: Record<string, string>, ...args: readonly string[]) {
  const options = { env: { ...process.env, ...env } };
  const config = ["--config", join(edge.dir, "agent.yaml")];
  return promisify(execFile)(node, [mainFile, "agent", ...args, ...config], options).then(
    ({ stdout, stderr }) => ({ code: 0, said: stdout + stderr }),
    (error: { code: number; stdout: string; stderr: string }) => ({
      code: error.code,
      said: error.stdout + error.stderr,
    }),
  );
}

test("central is reached through a proxy alone, which asks for a password and goes away for a while", async () => {
  await using edge = await Edge.prepare();
  await edge.startCentral();
  await using way = await CentralThroughProxy.start(edge.ports.central);
  await using origin = await startOrigin();
  const script = new CustomerScript(edge, origin.url, "proxy");
  await script.enrol();
  const authority = join(edge.dir, "ca.pem");
  writeFileSync(authority, way.caPem);
  edge.changeAgentSettings({
    central_url: `https://${centralName}`,
    central_ca_file: authority,
  });
  way.demanded = "edge:s3cr@t";
  const env = { HTTPS_PROXY: `http://edge:s3cr%40t@${way.address}` };
  await edge.startAgent(undefined, ["env", `HTTPS_PROXY=${env.HTTPS_PROXY}`]);
  for (const { run } of script.steps()) await run();
  expect(new Set(way.tunnels)).toEqual(new Set([`${centralName}:443`]));

  const state = async (): Promise<string> =>
    (JSON.parse((await ran(edge, env, "status", "--json")).said) as Status).parts.link.state;
  await until("the channel is up", async () => (await state()) === "connected");
  way.demanded = "edge:another";
  way.cut();
  await until("it is down", async () => (await state()) !== "connected");
  expect((await edge.visit("/page/one", { host: domain })).status).toBe(200);
  const refused = await ran(edge, env, "netcheck");
  expect([refused.code, refused.said]).toEqual([
    1,
    expect.stringContaining(`https://${centralName}/agent-api/v1/ca through http://${way.address}`),
  ]);
  expect((await ran(edge, env, "doctor")).said).toMatch(
    /FAIL.* central .*is not reached through the proxy http:\/\/127/,
  );
  way.demanded = "edge:s3cr@t";
  await until("it is up again", async () => (await state()) === "connected", 90_000);

  const asked = await ran(edge, env, "netcheck");
  expect([asked.code, asked.said]).toEqual([
    0,
    expect.stringContaining(` through http://${way.address}`),
  ]);
  const direct = await ran(edge, { ...env, NO_PROXY: "example.test" }, "netcheck");
  expect([direct.code, direct.said]).toEqual([1, expect.stringContaining("FAILED at dns")]);
  const packed = join(edge.dir, "diagnostics.tar.gz");
  await ran(edge, env, "diagnostics", "--out", packed);
  const { stdout } = await promisify(execFile)("tar", ["-xzOf", packed], { maxBuffer: 2 ** 26 });
  for (const said of [stdout, edge.agent.said, asked.said, refused.said])
    expect(said).not.toMatch(/s3cr(?:@|%40)t|ZWRnZTpz/);
}, 300_000);

test("every address is an IPv6 address", async () => {
  await using edge = await Edge.prepare({ host: "::1" });
  await edge.startCentral();
  await using origin = await startOrigin({ host: "::1" });
  const script = new CustomerScript(edge, origin.url, "six");
  await script.enrol();
  await edge.startAgent();
  for (const { run } of script.steps()) await run();
  const { status } = await edge.visit("/page/six", { host: domain });
  expect(status).toBe(200);
  const examined = await ran(edge, {}, "doctor");
  expect(examined.said).not.toMatch(/FAIL/);
  expect((await ran(edge, {}, "netcheck")).code).toBe(0);
}, 300_000);
