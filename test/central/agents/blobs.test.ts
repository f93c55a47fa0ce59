// Content-addressed files over HTTP: whole or not at all, resumable, and gone with no trace when torn.

import { createHash } from "node:crypto";
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { request, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { zstdDecompressSync } from "node:zlib";
import { expect, test } from "vitest";
import { parseSha256, type Sha256 } from "../../../src/core/ids.ts";
import { openBlobs } from "../../../src/central/store/content/blobs.ts";
import { name16, secret16, seedSite, startAgentSide } from "../../support/agent-side.ts";
import { connectAgent } from "../../support/fake-agent.ts";
import { until } from "../../support/until.ts";

const text = "0123456789";

function digestOf(bytes: string | Uint8Array): Sha256 {
  const digest = parseSha256(createHash("sha256").update(bytes).digest("hex"));
  if (digest === undefined) throw new Error("no digest");
  return digest;
}

async function started() {
  const side = await startAgentSide();
  await seedSite(side.store);
  return { side, agent: await connectAgent(side.url, name16, secret16) };
}

test("what was put is there, whole and in ranges, for good", async () => {
  const { side, agent } = await started();
  await using _ = side;
  const path = `/blobs/${digestOf(text)}`;
  expect((await agent.call(path)).status).toBe(404);
  expect((await agent.call(path, { method: "PUT", body: text })).status).toBe(204);
  expect((await agent.call(path, { method: "PUT", body: text })).status).toBe(204);
  const whole = await agent.call(path);
  expect(whole.headers.get("cache-control")).toContain("immutable");
  expect(whole.headers.get("etag")).toBe(`"${digestOf(text)}"`);
  expect(await whole.text()).toBe(text);
  const rows = [
    ["bytes=3-", 206, "3456789", "bytes 3-9/10"],
    ["bytes=3-5", 206, "345", "bytes 3-5/10"],
    ["bytes=0-99", 206, text, "bytes 0-9/10"],
    ["bytes=-4", 206, "6789", "bytes 6-9/10"],
    ["bytes=-99", 206, text, "bytes 0-9/10"],
    ["bytes=10-", 416, "", "bytes */10"],
    ["bytes=-0", 416, "", "bytes */10"],
    ["bytes=5-3", 200, text, null],
    ["bytes=0-1,3-4", 200, text, null],
    ["lines=1-2", 200, text, null],
  ] as const;
  for (const [range, status, body, contentRange] of rows) {
    const answer = await agent.call(path, { headers: { range } });
    expect([
      range,
      answer.status,
      await answer.text(),
      answer.headers.get("content-range"),
    ]).toEqual([range, status, body, contentRange]);
  }
});

test("whoever accepts zstd, and asks for the whole, gets it compressed", async () => {
  const { side, agent } = await started();
  await using _ = side;
  const page = Buffer.alloc(300_000, "all work and no play ");
  const path = `/blobs/${await side.blobs.put(page)}`;
  const ask = async (headers: Record<string, string>) => {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const authorization = `Bearer ${agent.token.access_token}`;
    request(new URL(side.url + path), { headers: { authorization, ...headers } })
      .on("response", resolve)
      .on("error", reject)
      .end();
    const answer = await promise;
    return { headers: answer.headers, bytes: await buffer(answer) };
  };
  const coded = await ask({ "accept-encoding": "zstd" });
  expect(coded.headers).toMatchObject({ "content-encoding": "zstd", "accel-blob-size": "300000" });
  expect(coded.bytes.length).toBeLessThan(3_000);
  expect(zstdDecompressSync(coded.bytes).equals(page)).toBe(true);
  const part = await ask({ "accept-encoding": "zstd", range: "bytes=1-3" });
  expect([part.headers["content-encoding"], String(part.bytes)]).toEqual([undefined, "ll "]);
  expect((await ask({ "accept-encoding": "identity" })).bytes.equals(page)).toBe(true);
});

test("the empty file is a blob", async () => {
  const { side, agent } = await started();
  await using _ = side;
  const path = `/blobs/${digestOf("")}`;
  expect((await agent.call(path, { method: "PUT", body: "" })).status).toBe(204);
  const answer = await agent.call(path);
  expect([answer.status, await answer.text()]).toEqual([200, ""]);
});

test("another digest than announced keeps nothing", async () => {
  const { side, agent } = await started();
  await using _ = side;
  const path = `/blobs/${digestOf("other")}`;
  const answer = await agent.call(path, { method: "PUT", body: text });
  expect([answer.status, await answer.json()]).toEqual([
    400,
    expect.objectContaining({ code: "invalid" }),
  ]);
  expect((await agent.call(path)).status).toBe(404);
  expect((await agent.call("/blobs/nonsense", { method: "PUT", body: text })).status).toBe(400);
  expect(readdirSync(join(side.stateDir, "blobs"))).toEqual(["tmp"]);
  expect(readdirSync(join(side.stateDir, "blobs/tmp"))).toEqual([]);
});

test("a torn upload keeps nothing, and the next one succeeds", async () => {
  const { side, agent } = await started();
  await using _ = side;
  const path = `/blobs/${digestOf(text)}`;
  const url = new URL(side.url + path);
  const upload = request(url, {
    method: "PUT",
    headers: { authorization: `Bearer ${agent.token.access_token}`, "content-length": 10 },
  });
  upload.on("error", () => {});
  upload.write("01234");
  const incoming = join(side.stateDir, "blobs/tmp");
  await until("the upload begins", () => readdirSync(incoming).length === 1);
  upload.destroy();
  await until("nothing is left of it", () => readdirSync(incoming).length === 0);
  expect((await agent.call(path)).status).toBe(404);
  expect((await agent.call(path, { method: "PUT", body: text })).status).toBe(204);
});

test("the size limit holds for announced and for unannounced sizes", async () => {
  const { side, agent } = await started();
  await using _ = side;
  const { status } = await until("an answer", async () => {
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number | undefined }>();
    request(new URL(`${side.url}/blobs/${digestOf(text)}`), {
      method: "PUT",
      headers: {
        authorization: `Bearer ${agent.token.access_token}`,
        "content-length": String(5 * 2 ** 30),
      },
    })
      .on("response", (answer) => {
        answer.destroy();
        resolve({ status: answer.statusCode });
      })
      .on("error", reject)
      .flushHeaders();
    return promise;
  });
  expect(status).toBe(413);
  const chunks = async function* () {
    yield Buffer.from("01234");
    yield Buffer.from("56789");
  };
  expect(await side.blobs.receive(digestOf(text), chunks(), 9)).toBe("too large");
  expect(await side.blobs.receive(digestOf(text), chunks(), 10)).toBe("stored");
});

test("missing names each blob once that central lacks", async () => {
  const { side, agent } = await started();
  await using _ = side;
  const [have, lack] = [await side.blobs.put(Buffer.from("have")), digestOf("lack")];
  const ask = async (body: unknown) =>
    agent.call("/blobs/missing", { method: "POST", body: JSON.stringify(body) });
  expect(await (await ask({ sha256: [have, lack, lack] })).json()).toEqual({ missing: [lack] });
  expect(await (await ask({ sha256: [] })).json()).toEqual({ missing: [] });
  expect((await ask({ sha256: ["x"] })).status).toBe(400);
  expect((await ask({ sha256: Array.from({ length: 10_001 }, () => have) })).status).toBe(400);
  expect((await agent.call("/blobs/missing", { method: "POST", body: "{" })).status).toBe(400);
});

test("many uploads at once are all committed", async () => {
  const { side } = await started();
  await using _ = side;
  const texts = Array.from({ length: 200 }, (_, no) => `file ${no}`);
  const digests = await Promise.all(texts.map(async (one) => side.blobs.put(Buffer.from(one))));
  expect(await side.blobs.missing(digests)).toEqual([]);
  expect(Buffer.from((await side.blobs.read(digestOf("file 7"))) ?? []).toString()).toBe("file 7");
});

test("after a restart nothing torn is left, and a file that the disk lost is asked for again", async () => {
  const { side } = await started();
  await using _ = side;
  const digest = await side.blobs.put(Buffer.from(text));
  writeFileSync(join(side.stateDir, "blobs/tmp/left"), "torn");
  const again = await openBlobs(join(side.stateDir, "blobs"), side.store, side.clock.now);
  expect(readdirSync(join(side.stateDir, "blobs/tmp"))).toEqual([]);
  expect(await again.sizeOf(digest)).toBe(10);
  rmSync(join(side.stateDir, "blobs", digest.slice(0, 2), digest));
  expect(await again.sizeOf(digest)).toBeUndefined();
  expect(await again.put(Buffer.from(text))).toBe(digest);
  expect(await again.sizeOf(digest)).toBe(10);
});
