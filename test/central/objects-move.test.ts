// `accel-central objects move`: what lies in the state directory is in the bucket afterwards, byte by byte, also after a move that was cut off.

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { objectsCommand } from "../../src/central/main.ts";
import { openStore } from "../../src/central/store/engine/database.ts";
import { openBlobs } from "../../src/central/store/content/blobs.ts";
import { sha256Of, type Sha256 } from "../../src/core/ids.ts";
import { bucketName } from "../support/bucket-rig.ts";
import { call, newSite, settingsOf, start } from "../support/central-whole.ts";
import { connectAgent } from "../support/fake-agent.ts";
import { objectsYaml } from "../support/objects-central.ts";
import { passing, startS3Faults } from "../support/s3-faults.ts";
import { startS3Server } from "../support/s3-server.ts";
import { tempDir } from "../support/temp-dir.ts";

const now = (): Date => new Date();
const texts = Array.from({ length: 250 }, (_, no) => `file ${no}\n`);
const wheel = Buffer.from("a wheel");
const digestOf = (bytes: string | Uint8Array): string =>
  createHash("sha256").update(bytes).digest("hex");

async function setUp() {
  await using stack = new AsyncDisposableStack();
  const dir = stack.use(tempDir()).path;
  const server = stack.use(await startS3Server(bucketName));
  const faults = stack.use(await startS3Faults(server.port));
  const stateDir = join(dir, "state");
  mkdirSync(join(stateDir, "packages"), { recursive: true });
  const yaml = objectsYaml(dir, faults.port);
  const config = join(dir, "central.yaml");
  writeFileSync(config, `listen: 127.0.0.1:0\nstate_dir: ${stateDir}\n${yaml}`);
  const digests: Sha256[] = [];
  {
    await using store = await openStore(join(stateDir, "central.db"), now);
    const blobs = await openBlobs(join(stateDir, "blobs"), store, now);
    digests.push(...(await Promise.all(texts.map(async (text) => blobs.put(Buffer.from(text))))));
    writeFileSync(join(stateDir, "packages", "0123456789abcdef01234567"), wheel);
    await store
      .insertInto("packages")
      .values({
        version: "1.0",
        version_key: "1",
        file: "accel_pack-1.0-py3-none-any.whl",
        size: wheel.byteLength,
        sha256: sha256Of(wheel),
        stored_as: "0123456789abcdef01234567",
        uploaded_by_user_id: 1,
        when_created: now().toISOString(),
      })
      .execute();
  }
  const run = async (...args: readonly string[]): Promise<string> => {
    let said = "";
    const running = objectsCommand.run({
      version: "0.0.0",
      program: "accel-central",
      args: [...args, "--config", config],
      out: (text) => (said += text),
      colour: false,
      env: {},
      stop: new AbortController().signal,
      onReload: () => undefined,
    });
    await running.catch((error: unknown) => {
      throw Object.assign(Object(error), { said });
    });
    return said;
  };
  const owned = stack.move();
  return {
    dir,
    stateDir,
    config,
    yaml,
    server,
    faults,
    digests,
    run,
    pathOf: (sha256: string) => join(stateDir, "blobs", sha256.slice(0, 2), sha256),
    [Symbol.asyncDispose]: async () => owned.disposeAsync(),
  };
}

const copies = ({ server }: Awaited<ReturnType<typeof setUp>>): number =>
  server.asked.filter((line) => line.startsWith("PUT") && !line.includes("/check/")).length;

test("everything is in the bucket, and served from there", async () => {
  await using rig = await setUp();
  expect(await rig.run("move")).toMatch(
    /: 250 blobs and 1 packages with \d+ bytes, each read back and compared\n/,
  );
  const there = [...rig.server.objects].map(([key, object]) => [
    key.replace(/^central\/([0-9a-f]{64})\/[0-9a-f]{16}$/, "$1"),
    digestOf(object),
  ]);
  expect(there).toHaveLength(251);
  expect(there.filter(([named, found]) => named !== found)).toEqual([]);
  expect(await rig.run("move")).toMatch(/in a bucket already: there is nothing left to do\n$/);
  expect(JSON.parse(await rig.run("move", "--json"))).toEqual({ moved_before: true });
  for (const name of ["blobs", "packages"]) rmSync(join(rig.stateDir, name), { recursive: true });
  await using central = await start(settingsOf(rig.stateDir, rig.yaml));
  const { token, name16, secret16 } = await newSite(central.url);
  const agent = await connectAgent(central.agents, name16, secret16);
  expect(await (await agent.call(`/blobs/${rig.digests[7]}`)).text()).toBe(texts[7]);
  const newest = await call(central.url, "GET", "/download/accel_pack/", token);
  const url = new URL(String(newest["download_url"]));
  const download = async (): Promise<Response> =>
    fetch(`${central.url}${url.pathname}`, { headers: { authorization: `Token ${token}` } });
  expect(Buffer.from(await (await download()).arrayBuffer()).equals(wheel)).toBe(true);
  rig.faults.choose = () => ({ kind: "status", status: 503, code: "SlowDown" });
  const refused = await download();
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "5"]);
  expect(await refused.json()).toMatchObject({ type: "about:blank", status: 503 });
  expect(existsSync(join(rig.stateDir, "packages"))).toBe(false);
});

test("a move that was cut off goes on where it was; until then central serves from the directory", async () => {
  await using rig = await setUp();
  let puts = 0;
  rig.faults.choose = (method, path) =>
    method === "PUT" && !path.includes("/check/") && ++puts > 120
      ? { kind: "status", status: 403, code: "AccessDenied" }
      : passing;
  await expect(rig.run("move")).rejects.toMatchObject({
    code: "OBJECTS_UNREACHABLE",
    message: expect.stringMatching(/may not do that there/),
  });
  {
    await expect(start(settingsOf(rig.stateDir, rig.yaml))).rejects.toMatchObject({
      code: "OBJECTS_MISPLACED",
    });
    await using central = await start(settingsOf(rig.stateDir));
    const { name16, secret16 } = await newSite(central.url);
    const agent = await connectAgent(central.agents, name16, secret16);
    for (const at of [0, 249])
      expect(await (await agent.call(`/blobs/${rig.digests[at]}`)).text()).toBe(texts[at]);
  }
  rig.faults.choose = () => passing;
  const before = copies(rig);
  expect(JSON.parse(await rig.run("move", "--json"))).toMatchObject({
    blobs: 150,
    packages: 1,
    lost_blobs: [],
    lost_packages: [],
  });
  expect(copies(rig) - before).toBe(151);
});

test("what the disk has lost or damaged is named, and the rest is moved", async () => {
  await using rig = await setUp();
  const [gone = "", damaged = "", cut = ""] = rig.digests;
  rmSync(rig.pathOf(gone));
  writeFileSync(rig.pathOf(damaged), "x".repeat(texts[1]?.length ?? 0));
  writeFileSync(rig.pathOf(cut), "");
  rmSync(join(rig.stateDir, "packages", "0123456789abcdef01234567"));
  await expect(rig.run("move")).rejects.toMatchObject({
    code: "BACKUP_NOT_WHOLE",
    said: expect.stringMatching(
      /247 blobs and 0 packages(.|\n)*NOT WHOLE: 3 blobs(.|\n)*NOT WHOLE: 1 packages .*: 0123456789abcdef01234567\n$/,
    ),
  });
  await using central = await start(settingsOf(rig.stateDir, rig.yaml));
  const { name16, secret16 } = await newSite(central.url);
  const agent = await connectAgent(central.agents, name16, secret16);
  const asked = await agent.call("/blobs/missing", {
    method: "POST",
    body: JSON.stringify({ sha256: rig.digests.slice(0, 5) }),
  });
  expect(await asked.json()).toEqual({ missing: [gone, damaged, cut] });
  const put = await agent.call(`/blobs/${gone}`, { method: "PUT", body: texts[0] ?? "" });
  expect(put.status).toBe(204);
  expect(await (await agent.call(`/blobs/${gone}`)).text()).toBe(texts[0]);
});

test("a bucket that gives back other bytes keeps nothing of the store", async () => {
  await using rig = await setUp();
  rig.server.alter = (key, object) =>
    key.includes("/check/") ? object : Buffer.alloc(object.length);
  await expect(rig.run("move")).rejects.toMatchObject({
    code: "OBJECTS_UNREACHABLE",
    message: expect.stringMatching(/other bytes than were written/),
  });
  await using central = await start(settingsOf(rig.stateDir));
  await newSite(central.url);
});

test.each([[[]], [["status"]]])("%j is no use of it", async (args) => {
  await using rig = await setUp();
  await expect(rig.run(...args)).rejects.toMatchObject({ code: "USAGE" });
});
