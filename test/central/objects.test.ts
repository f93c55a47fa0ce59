// Central whole with its blobs and packages in a bucket: what agents and customers get, also while the bucket fails; and where it does not start.

import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { centralCheckCommand } from "../../src/central/main.ts";
import { run } from "../cli/command-rig.ts";
import { bucketName } from "../support/bucket-rig.ts";
import { call, newSite, settingsOf, start, statusOf } from "../support/central-whole.ts";
import { connectAgent } from "../support/fake-agent.ts";
import { objectsYaml } from "../support/objects-central.ts";
import { passing, startS3Faults } from "../support/s3-faults.ts";
import { startS3Server } from "../support/s3-server.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";

const digestOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

async function setUp(options: { readonly mayDelete?: boolean } = {}) {
  await using stack = new AsyncDisposableStack();
  const dir = stack.use(tempDir()).path;
  const server = stack.use(await startS3Server(bucketName, options));
  const faults = stack.use(await startS3Faults(server.port));
  const stateDir = join(dir, "state");
  mkdirSync(stateDir);
  const yaml = objectsYaml(dir, faults.port);
  const owned = stack.move();
  return {
    dir,
    stateDir,
    server,
    faults,
    yaml,
    settings: settingsOf(stateDir, yaml),
    [Symbol.asyncDispose]: async () => owned.disposeAsync(),
  };
}

const failing = { kind: "status", status: 500, code: "InternalError" } as const;

test("what an agent uploads is in the bucket, and comes from there, whole and in ranges", async () => {
  await using rig = await setUp();
  await using central = await start(rig.settings);
  const { name16, secret16 } = await newSite(central.url);
  const agent = await connectAgent(central.agents, name16, secret16);
  const bytes = randomBytes(300_000);
  const path = `/blobs/${digestOf(bytes)}`;
  expect((await agent.call(path)).status).toBe(404);
  expect((await agent.call(path, { method: "PUT", body: bytes })).status).toBe(204);
  expect([...rig.server.objects.values()]).toEqual([bytes]);
  expect(existsSync(join(rig.stateDir, "blobs"))).toBe(false);
  const whole = await agent.call(path);
  expect([whole.status, whole.headers.get("content-length")]).toEqual([200, "300000"]);
  expect(Buffer.from(await whole.arrayBuffer()).equals(bytes)).toBe(true);
  const part = await agent.call(path, { headers: { range: "bytes=299990-" } });
  expect([part.status, part.headers.get("content-range")]).toEqual([
    206,
    "bytes 299990-299999/300000",
  ]);
  expect(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(299_990))).toBe(true);
  expect(await statusOf(rig.stateDir)).toMatchObject({
    objects: `s3://${bucketName}/central/ at http://127.0.0.1:${rig.faults.port}`,
    warnings: [],
  });
});

test("while the bucket fails agents and customers get 503 and when to come again; then all is as before", async () => {
  await using rig = await setUp();
  await using central = await start(rig.settings);
  const { token, id, name16, secret16 } = await newSite(central.url);
  const agent = await connectAgent(central.agents, name16, secret16);
  const bytes = randomBytes(100_000);
  const path = `/blobs/${digestOf(bytes)}`;
  await agent.call(path, { method: "PUT", body: bytes });
  const domain = { name: "www.example.test", deployment_site_id: id };
  await call(central.url, "POST", "/domain/", token, domain);
  const content = JSON.stringify({ domains: { [domain.name]: {} } });
  const devlove = { schema: "devlove/1", content };
  await call(central.url, "POST", `/${domain.name}/devlove/first/`, token, devlove);
  const headers = { authorization: `Token ${token}`, "content-type": "application/json" };
  const versions = `${central.url}/presentation-api/v1/active-viewset/${domain.name}/`;
  const [version] = (await (await fetch(versions, { headers })).json()) as { id: number }[];
  const activate = async (): Promise<Response> =>
    fetch(`${versions}${version?.id}/`, { method: "PUT", headers, body: "{}" });
  rig.faults.choose = () => failing;
  for (const refused of [
    await agent.call(path),
    await agent.call(path, { headers: { range: "bytes=5-" } }),
    await agent.call(`/blobs/${digestOf(Buffer.from("x"))}`, { method: "PUT", body: "x" }),
  ]) {
    expect([refused.status, Number(refused.headers.get("retry-after")) > 0]).toEqual([503, true]);
    expect(await refused.json()).toEqual({
      code: "unavailable",
      message: "central's bucket cannot be had now",
    });
  }
  const activation = await activate();
  expect([activation.status, activation.headers.get("content-type")]).toEqual([
    503,
    "application/problem+json",
  ]);
  expect(activation.headers.get("retry-after")).toBe("5");
  expect(await activation.json()).toMatchObject({
    status: 503,
    detail: expect.stringContaining("nothing was changed"),
  });
  const scrape = async (): Promise<string> => (await fetch(`${central.url}/metrics`)).text();
  expect(await scrape()).toMatch(
    /accel_central_warning\{code="objects_unreachable",severity="error"\} 1/,
  );
  expect(await scrape()).toMatch(
    /accel_central_object_calls_total\{call="get",outcome="failed"\} 2/,
  );
  expect(await statusOf(rig.stateDir)).toMatchObject({
    warnings: [{ code: "objects_unreachable", text: expect.stringContaining("it answered 500") }],
  });
  // Central itself is well, and says why an import stands still.
  expect((await fetch(`${central.url}/readyz`)).status).toBe(200);
  const imported = `/import-viewset/${domain.name}/${id}/second/`;
  await call(central.url, "POST", imported, token, {});
  expect(await call(central.url, "GET", imported, token)).toMatchObject({
    status: "started",
    waits_for: expect.stringContaining("object storage"),
  });
  rig.faults.choose = () => passing;
  expect(Buffer.from(await (await agent.call(path)).arrayBuffer()).equals(bytes)).toBe(true);
  expect(await scrape()).not.toContain("objects_unreachable");
  // It can be read again, and nothing has been written yet.
  expect(await call(central.url, "GET", imported, token)).toHaveProperty("waits_for");
  expect((await activate()).status).toBe(200);
  expect(await call(central.url, "GET", imported, token)).not.toHaveProperty("waits_for");
});

test("an answer of the bucket that breaks off is never a whole one for the agent", async () => {
  await using rig = await setUp();
  await using central = await start(rig.settings);
  const { name16, secret16 } = await newSite(central.url);
  const agent = await connectAgent(central.agents, name16, secret16);
  const bytes = randomBytes(500_000);
  const path = `/blobs/${digestOf(bytes)}`;
  await agent.call(path, { method: "PUT", body: bytes });
  rig.faults.choose = () => ({ kind: "cut", afterBytes: 100_000, isSilent: false });
  for (const headers of [{}, { "accept-encoding": "zstd" }]) {
    const torn = await agent.call(path, { headers });
    expect(torn.status).toBe(200);
    await expect(torn.arrayBuffer()).rejects.toThrow();
  }
  // Where nothing came at all it is a refusal.
  rig.faults.choose = () => ({ kind: "cut", afterBytes: 0, isSilent: false });
  expect((await agent.call(path)).status).toBe(503);
});

test("an object that is gone although a row names it: 503, a warning that names it, and no end of it until it is back", async () => {
  await using rig = await setUp();
  await using central = await start(rig.settings);
  const { name16, secret16 } = await newSite(central.url);
  const agent = await connectAgent(central.agents, name16, secret16);
  const path = `/blobs/${digestOf(Buffer.from("lost"))}`;
  for (const text of ["lost", "there"])
    await agent.call(`/blobs/${digestOf(Buffer.from(text))}`, { method: "PUT", body: text });
  const [first] = rig.server.objects;
  if (first === undefined) throw new Error("nothing is in the bucket");
  const [key, object] = first;
  rig.server.objects.delete(key);
  expect((await agent.call(path)).status).toBe(503);
  expect((await agent.call(`/blobs/${digestOf(Buffer.from("there"))}`)).status).toBe(200);
  expect(await statusOf(rig.stateDir)).toMatchObject({
    warnings: [{ code: "objects_unreachable", text: expect.stringMatching(/lacks the object/) }],
  });
  rig.server.objects.set(key, object);
  expect(await (await agent.call(path)).text()).toBe("lost");
  expect(await statusOf(rig.stateDir)).toMatchObject({ warnings: [] });
});

test("central starts while the bucket is away, and serves what needs none", async () => {
  await using rig = await setUp();
  rig.faults.choose = () => failing;
  await using central = await start(rig.settings);
  const { name16, secret16 } = await newSite(central.url);
  const agent = await connectAgent(central.agents, name16, secret16);
  expect((await agent.call("/snapshot")).status).toBe(200);
});

test("blobs of the state directory are not looked for in a bucket, nor those of a bucket in the directory", async () => {
  await using rig = await setUp();
  const plain = settingsOf(rig.stateDir);
  const upload = async (url: string, text: string): Promise<void> => {
    const { name16, secret16 } = await newSite(url);
    const agent = await connectAgent(`${url}/agent-api/v1`, name16, secret16);
    const path = `/blobs/${digestOf(Buffer.from(text))}`;
    expect((await agent.call(path, { method: "PUT", body: text })).status).toBe(204);
  };
  {
    await using central = await start(plain);
    await upload(central.url, "in the directory");
  }
  const notInBucket = {
    code: "OBJECTS_MISPLACED",
    message: expect.stringMatching(/are in .*state, not in s3:\/\/accel-test\/central\//),
  };
  await expect(start(rig.settings)).rejects.toMatchObject(notInBucket);
  await expect(check(rig.yaml, rig.dir)).rejects.toMatchObject(notInBucket);
  const other = join(rig.dir, "other");
  mkdirSync(other);
  {
    await using central = await start(settingsOf(other, rig.yaml));
    await upload(central.url, "in the bucket");
  }
  const noBucket = {
    code: "OBJECTS_MISPLACED",
    message: expect.stringMatching(/are in a bucket, and the settings name none/),
  };
  await expect(start(settingsOf(other))).rejects.toMatchObject(noBucket);
  await expect(check("", rig.dir, other)).rejects.toMatchObject(noBucket);
  expect(await check(rig.yaml, rig.dir, other)).toMatch(/: valid\n$/);
});

test("another bucket, or another directory, that has nothing of what the store names: check refuses it, a start warns until it is there", async () => {
  await using rig = await setUp();
  const upload = async (url: string): Promise<void> => {
    const { name16, secret16 } = await newSite(url);
    const agent = await connectAgent(`${url}/agent-api/v1`, name16, secret16);
    const path = `/blobs/${digestOf(Buffer.from("named"))}`;
    expect((await agent.call(path, { method: "PUT", body: "named" })).status).toBe(204);
  };
  const warned = async (stateDir: string, text: RegExp): Promise<void> => {
    const warnings = [{ code: "objects_misplaced", text: expect.stringMatching(text) }];
    await until("it is told", async () => {
      expect(await statusOf(stateDir)).toMatchObject({ warnings });
      return true;
    });
  };
  {
    await using central = await start(rig.settings);
    await upload(central.url);
  }
  expect(await check(rig.yaml, rig.dir)).toMatch(/: valid\n$/);
  const kept = [...rig.server.objects];
  rig.server.objects.clear();
  const inBucket = /s3:\/\/accel-test\/central\/ .* lacks [0-9a-f]{64}\/.*, the newest blob/;
  await expect(check(rig.yaml, rig.dir)).rejects.toMatchObject({
    code: "OBJECTS_MISPLACED",
    message: expect.stringMatching(inBucket),
  });
  {
    await using _ = await start(rig.settings);
    await warned(rig.stateDir, inBucket);
  }
  for (const [key, object] of kept) rig.server.objects.set(key, object);
  {
    await using _ = await start(rig.settings);
    expect(await statusOf(rig.stateDir)).toMatchObject({ warnings: [] });
  }
  const plain = join(rig.dir, "plain");
  mkdirSync(plain);
  {
    await using central = await start(settingsOf(plain));
    await upload(central.url);
  }
  expect(await check("", rig.dir, plain)).toMatch(/: valid\n$/);
  renameSync(join(plain, "blobs"), join(rig.dir, "elsewhere"));
  const inDirectory = /plain lacks blobs\/[0-9a-f]{2}\/[0-9a-f]{64}, the newest blob/;
  await expect(check("", rig.dir, plain)).rejects.toMatchObject({
    code: "OBJECTS_MISPLACED",
    message: expect.stringMatching(inDirectory),
  });
  await using _ = await start(settingsOf(plain));
  await warned(plain, inDirectory);
});

async function check(yaml: string, dir: string, stateDir = join(dir, "state")): Promise<string> {
  const config = join(dir, "central.yaml");
  writeFileSync(config, `state_dir: ${stateDir}\n${yaml}`);
  return run(centralCheckCommand, ["--config", config]);
}

test("check tries the bucket with an object of its own, and leaves nothing", async () => {
  await using rig = await setUp();
  expect(await check(rig.yaml, rig.dir)).toMatch(
    /^s3:\/\/accel-test\/central\/ at [^\n]*: can hold blobs and packages\n[^\n]*: valid\n$/,
  );
  expect(rig.server.asked.map((line) => line.split(" ")[0])).toEqual([
    "PUT",
    "GET",
    "DELETE",
    "HEAD",
  ]);
  expect(rig.server.objects.size).toBe(0);
  expect(readdirSync(rig.stateDir)).toEqual([]);
});

test("check says in words what the bucket lacks", async () => {
  await using rig = await setUp({ mayDelete: false });
  const refused = (words: string) =>
    expect.objectContaining({
      code: "OBJECTS_UNREACHABLE",
      message: expect.stringMatching(words),
    });
  await expect(check(rig.yaml, rig.dir)).rejects.toEqual(
    refused("an object cannot be removed: .*the access key may not do that there"),
  );
  await expect(check(rig.yaml.replace(bucketName, "other"), rig.dir)).rejects.toEqual(
    refused("an object cannot be written: .*there is no such bucket"),
  );
  rig.faults.choose = (method) => (method === "GET" ? failing : passing);
  await expect(check(rig.yaml, rig.dir)).rejects.toEqual(
    refused("an object cannot be read: .*it answered 500"),
  );
  writeFileSync(join(rig.dir, "s3.secret"), "two\nlines\n");
  await expect(check(rig.yaml, rig.dir)).rejects.toMatchObject({ code: "FILE_UNUSABLE" });
});
