// Pictures as visitors see them, over the lane, node:http and HTTP/2: who gets which form, with which head, and what ends a form.

import { createHash } from "node:crypto";
import { mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { blobPath } from "../../../../src/core/blob-path.ts";
import { parseSha256 } from "../../../../src/core/ids.ts";
import type { CacheInput, SiteInput } from "../../../../src/core/serving/effective-devlove.ts";
import { encodeManifestTable } from "../../../../src/core/serving/manifest-table.ts";
import type { Views } from "../../../../src/core/serving/serving-state.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import { FakeEncoder, pictureBytes } from "../fake-encoder.ts";
import type { Handler } from "../stage.ts";
import {
  visited,
  ways,
  type VisitAsked,
  type Visited,
  type VisitGot,
  type Way,
} from "../visited.ts";

const jpeg = pictureBytes("image/jpeg");
const original = jpeg.toString();
const everything = "image/avif,image/webp,image/apng,image/*,*/*;q=0.8";
const optimized: SiteInput = { images: { optimize: true, widths: [320, 640] } };

type Head = Readonly<Record<string, string>>;

/** A picture for a minute; `head` is said beside or instead. */
function pictured(head: Head = {}, body = jpeg): Handler {
  return (request, response) => {
    const fields: Record<string, string> = {
      "cache-control": "max-age=60",
      "content-type": "image/jpeg",
      etag: '"v1"',
      "repr-digest": "sha-256=:x:",
      "content-disposition": 'inline; filename="photo.jpg"',
      "x-content-type-options": "nosniff",
      ...head,
    };
    const isSame = request.headers["if-none-match"] === '"v1"';
    response.writeHead(isSame ? 304 : 200, fields);
    response.end(isSame || request.method === "HEAD" ? undefined : body);
  };
}

type Scene = AsyncDisposable & {
  readonly s: Visited;
  readonly encoder: FakeEncoder;
  /** `accept`: undefined says nothing. */
  readonly ask: (path?: string, accept?: string, asked?: VisitAsked) => Promise<VisitGot>;
  /** Asks until that form is sent. */
  readonly made: (form: string, path?: string, accept?: string) => Promise<VisitGot>;
};

async function open(
  way: Way,
  handler: Handler,
  {
    site = optimized,
    rule = {},
    views,
  }: { site?: SiteInput; rule?: CacheInput; views?: Views } = {},
  blobsDir?: string,
): Promise<Scene> {
  const encoder = new FakeEncoder();
  const edge = { images: encoder, ...(blobsDir !== undefined && { blobsDir }) };
  const s = await visited(way, handler, rule, {
    site,
    edge,
    ...(views !== undefined && { views }),
  });
  const ask: Scene["ask"] = (path = "/photo.jpg", accept = everything, asked = {}) =>
    s.visit(path, { ...asked, headers: { ...(accept !== "" && { accept }), ...asked.headers } });
  const made: Scene["made"] = (form, path, accept) =>
    until(form, async () => {
      const got = await ask(path, accept);
      expect(got.status).toBe(200);
      return got.text.startsWith(`${form} q`) ? got : undefined;
    });
  return { s, encoder, ask, made, [Symbol.asyncDispose]: async () => s[Symbol.asyncDispose]() };
}

const cacheStatus = ({ headers }: VisitGot): string => String(headers["cache-status"]);

describe.each(ways)("over %s", (way) => {
  it("a stored picture is sent in the best form that the visitor names, with a head of its own", async () => {
    await using scene = await open(way, pictured());
    const first = await scene.ask();
    expect(first).toMatchObject({ status: 200, text: original, headers: { vary: "Accept" } });
    const avif = await scene.made("avif");
    expect(avif.headers).toMatchObject({
      "content-type": "image/avif",
      "content-length": `${avif.text.length}`,
      etag: '"v1-avif"',
      vary: "Accept",
      "content-disposition": 'inline; filename="photo.jpg"',
      "x-content-type-options": "nosniff",
      "cache-status": expect.stringContaining("accel-agent; hit"),
    });
    expect(avif.text).toBe("avif q80 of 5000");
    for (const name of ["repr-digest", "accept-ranges", "content-encoding"])
      expect(avif.headers[name]).toBeUndefined();
    const webp = await scene.made("webp", undefined, "image/webp,*/*");
    expect(webp.headers).toMatchObject({ "content-type": "image/webp", etag: '"v1-webp"' });
    for (const accept of ["", "*/*", "image/*", "image/avif;q=0"]) {
      const plain = await scene.ask(undefined, accept);
      expect(plain).toMatchObject({
        text: original,
        headers: { "content-type": "image/jpeg", etag: '"v1"', vary: "Accept", "repr-digest": "sha-256=:x:" },
      }); // prettier-ignore
    }
    const head = await scene.ask(undefined, everything, { method: "HEAD" });
    expect(head).toMatchObject({ status: 200, text: "" });
    expect(head.headers).toMatchObject({ ...avif.headers, date: expect.anything(), age: expect.anything(), "cache-status": expect.anything() }); // prettier-ignore
    expect(scene.s.seen).toHaveLength(1);
    expect(scene.encoder.forms).toEqual(["avif", "webp"]);
  });

  it("a condition may name any form that the visitor takes", async () => {
    await using scene = await open(way, pictured());
    await scene.made("avif");
    const asked = (tag: string, accept = everything): Promise<VisitGot> =>
      scene.ask(undefined, accept, { headers: { "if-none-match": tag } });
    for (const tag of ['"v1-avif"', '"v1-webp"', '"v1"', 'W/"v1-avif"']) {
      const { status, text, headers } = await asked(tag);
      expect([status, text]).toEqual([304, ""]);
      expect(headers).toMatchObject({ etag: tag.replace("W/", ""), vary: "Accept" });
      expect(headers["content-type"]).toBeUndefined();
    }
    expect((await asked('"v1-avif"', "*/*")).text).toBe(original);
    expect((await asked('"v1-avif-640"')).status).toBe(200);
    expect((await asked('"v2-avif"')).status).toBe(200);
  });

  it("forms under a weak tag have weak tags of their own, and none is taken for the original", async () => {
    await using scene = await open(way, pictured({ etag: 'W/"v1"' }));
    const avif = await scene.made("avif");
    expect(avif.headers).toMatchObject({ "content-type": "image/avif", etag: 'W/"v1-avif"' });
    const asked = (tag: string, accept = everything): Promise<VisitGot> =>
      scene.ask(undefined, accept, { headers: { "if-none-match": tag } });
    for (const tag of ['W/"v1-avif"', 'W/"v1-webp"', 'W/"v1"']) {
      const { status, headers } = await asked(tag);
      expect({ status, etag: headers["etag"] }).toEqual({ status: 304, etag: tag });
    }
    const plain = await asked('W/"v1-avif"', "text/html");
    expect(plain).toMatchObject({ status: 200, text: original, headers: { etag: 'W/"v1"' } });
    expect((await asked('W/"v1"', "text/html")).status).toBe(304);
  });

  it("who takes both formats ends with the smaller of a PNG, and has one made of a JPEG", async () => {
    const png = pictureBytes("image/png");
    const drawn = pictured({ "content-type": "image/png" }, png);
    const handler: Handler = (...asked) =>
      (asked[0].url === "/drawn.png" ? drawn : pictured())(...asked);
    await using scene = await open(way, handler);
    const { answer } = scene.encoder;
    scene.encoder.answer = (job) =>
      job.form === "avif" ? { kind: "made", body: Buffer.alloc(4_000, "avif q") } : answer(job);
    const small = await scene.made("webp", "/drawn.png");
    expect(small.headers).toMatchObject({ "content-type": "image/webp", etag: '"v1-webp"' });
    expect(scene.encoder.forms).toEqual(["avif", "webp"]);
    expect((await scene.made("avif", "/drawn.png", "image/avif")).text).toHaveLength(4_000);
    for (let n = 0; n < 3; n++) await scene.made("avif");
    expect(scene.encoder.forms).toEqual(["avif", "webp", "avif"]);
    // A form that somebody else had made is sent where it is smaller.
    await scene.made("webp", undefined, "image/webp");
    await scene.made("webp");
    expect(scene.encoder.forms).toEqual(["avif", "webp", "avif", "webp"]);
  });

  it("a part is cut out of the original, and no-transform holds", async () => {
    await using scene = await open(way, pictured());
    await scene.made("avif");
    const part = await scene.ask(undefined, everything, { headers: { range: "bytes=4-10" } });
    expect(part).toMatchObject({ status: 206, text: original.slice(4, 11).slice(-7) });
    expect(part.headers).toMatchObject({ "content-type": "image/jpeg", vary: "Accept" });
    const wish = { headers: { "cache-control": "no-transform" } };
    expect((await scene.ask(undefined, everything, wish)).text).toBe(original);
    const rest = { headers: { range: "bytes=4-", "if-range": '"v1-avif"' } };
    expect(await scene.ask(undefined, everything, rest)).toMatchObject({ status: 200, text: original }); // prettier-ignore
  });

  it("a listed width is a form of the same response, and is for everybody", async () => {
    await using scene = await open(way, pictured());
    const first = await scene.ask("/photo.jpg?width=640");
    expect(first.text).toBe(original);
    const narrow = await scene.made("avif-640", "/photo.jpg?width=640");
    expect(narrow.headers).toMatchObject({ "content-type": "image/avif", etag: '"v1-avif-640"' });
    const plain = await scene.made("same-320", "/photo.jpg?width=320", "*/*");
    expect(plain.headers).toMatchObject({ "content-type": "image/jpeg", etag: '"v1-same-320"' });
    expect(scene.s.seen.map(({ url }) => url)).toEqual(["/photo.jpg"]);
    // The whole picture is another form, and what is no listed width is asked of the origin.
    expect((await scene.made("avif")).headers).toMatchObject({ etag: '"v1-avif"' });
    await scene.ask("/photo.jpg?width=641");
    await scene.ask("/photo.jpg?v=1&width=320");
    await scene.ask("/photo?width=320");
    expect(scene.s.seen.map(({ url }) => url)).toEqual([
      "/photo.jpg",
      "/photo.jpg?width=641",
      "/photo.jpg?v=1",
      "/photo?width=320",
    ]);
  });

  it("a clear takes the forms along, and one that comes meanwhile keeps them from being stored", async () => {
    await using scene = await open(way, pictured());
    const { cache } = scene.s.edge;
    await scene.made("avif-640", "/photo.jpg?width=640");
    cache.clear(({ path }) => path === "/photo.jpg");
    expect(cache.entries).toEqual([]);
    const { answer } = scene.encoder;
    scene.encoder.answer = (job) => {
      cache.clear(() => true);
      return answer(job);
    };
    const again = await scene.ask("/photo.jpg?width=640");
    expect(again.text).toBe(original);
    expect(cacheStatus(again)).toContain("fwd=uri-miss");
    await until("the attempt", async () =>
      (await scene.s.edge.registry.metrics()).includes('format="avif",outcome="cleared"} 1'),
    );
    expect(cache.entries).toEqual([]);
  });

  it("a picture that has aged is sent in its form while it is confirmed, and stale", async () => {
    await using scene = await open(way, pictured({ "cache-control": "max-age=10" }), {
      rule: { stale_while_revalidate_s: 60 },
    });
    await scene.made("avif");
    scene.s.edge.skewMs = 15_000;
    const stale = await scene.ask();
    expect(stale).toMatchObject({ text: "avif q80 of 5000", headers: { vary: "Accept" } });
    await until("the confirmation", () => scene.s.edge.cache.refreshed === 1);
    const fresh = await scene.ask();
    expect(fresh.text).toBe("avif q80 of 5000");
    scene.s.edge.skewMs = 100_000;
    const confirmed = await scene.ask(undefined, everything, { headers: { "if-none-match": '"v1-avif"' } }); // prettier-ignore
    expect(confirmed).toMatchObject({
      status: 304,
      headers: { etag: '"v1-avif"', vary: "Accept" },
    });
  });

  it("a soft clear leaves the forms, and has the origin asked", async () => {
    await using scene = await open(way, pictured(), { rule: { stale_while_revalidate_s: 60 } });
    await scene.made("avif");
    const { cache } = scene.s.edge;
    cache.clearSoftly(() => true, Date.now());
    expect((await scene.ask()).text).toBe("avif q80 of 5000");
    await until("the confirmation", () => cache.refreshed === 1);
    expect((await scene.ask()).text).toBe("avif q80 of 5000");
  });

  it.each<[string, Head, SiteInput]>([
    ["the site does not want them", {}, {}],
    ["its origin forbids it", { "cache-control": "max-age=60, no-transform" }, optimized],
    ["its origin chooses by Accept", { vary: "Accept" }, optimized],
    ["its origin has coded it", { "content-encoding": "gzip" }, optimized],
    ["it is a GIF", { "content-type": "image/gif" }, optimized],
    ["it says no type", { "content-type": "" }, optimized],
    ["it is private", { "cache-control": "private, max-age=60" }, optimized],
    ["a header of the site forbids it", {}, { ...optimized, headers: { set: { "Cache-Control": "no-transform" } } }],
    ["a header of the site says the type", {}, { ...optimized, headers: { set: { "Content-Type": "image/jpeg" } } }],
    ["no number of the day is left to begin with", {}, { images: { optimize: true, variants_per_day_max: 0 } }],
  ])("there are no forms where %s", async (_name, head, site) => {
    await using scene = await open(way, pictured(head), { site });
    for (let n = 0; n < 3; n++) expect((await scene.ask()).text).toBe(original);
    expect(scene.encoder.jobs).toEqual([]);
    expect(scene.s.edge.cache.entries.length).toBeLessThan(2);
  }); // prettier-ignore

  it("a rule that tells answers apart by Accept leaves the choice to the origin", async () => {
    await using scene = await open(way, pictured(), { rule: { vary: ["Accept"] } });
    for (const accept of [everything, everything, "*/*"])
      expect((await scene.ask(undefined, accept)).text).toBe(original);
    expect(scene.encoder.jobs).toEqual([]);
    expect(scene.s.seen).toHaveLength(2);
  });

  it("headers of a rule are said with each form, and pictures need no compression", async () => {
    const rule: CacheInput = {
      ttl_s: 60,
      browser_ttl_s: 5,
      headers: { response: { set: { "X-Rule": "1", Vary: "X-Device" }, remove: ["X-Gone"] } },
    };
    const site = { ...optimized, compression: false };
    await using scene = await open(way, pictured({ "x-gone": "1" }), { site, rule });
    const { headers } = await scene.made("avif");
    expect(headers).toMatchObject({ "x-rule": "1", "content-type": "image/avif" });
    expect(String(headers["vary"])).toBe("X-Device, Accept");
    expect(String(headers["cache-control"])).toContain("max-age=5");
    expect(headers["x-gone"]).toBeUndefined();
  });

  it("what is sent and saved is counted by format, and nothing of widths", async () => {
    await using scene = await open(way, pictured());
    await scene.made("avif-640", "/photo.jpg?width=640");
    const metrics = await scene.s.edge.registry.metrics();
    const saved = jpeg.length - "avif-640 q80 of 5000".length;
    for (const line of [
      'image_variants_served_total{domain="www.example.com",format="avif"} 1',
      `image_variant_bytes_saved_total{domain="www.example.com",format="avif"} ${saved}`,
      'image_variants_total{format="avif",outcome="made"} 1',
    ])
      expect(metrics).toContain(`accel_agent_${line}`);
    expect(metrics.match(/^accel_agent_image_.*$/gm)?.join("\n")).not.toContain("640");
  });
});

type Laid = { readonly views: Views; readonly blobsDir: string };

function manifestOf(dir: string): Laid {
  const blobsDir = join(dir, "blobs");
  const sha256 = parseSha256(createHash("sha256").update(jpeg).digest("hex"));
  if (sha256 === undefined) throw new Error("no digest");
  const blob = blobPath(blobsDir, sha256);
  mkdirSync(dirname(blob), { recursive: true });
  writeFileSync(blob, jpeg);
  const file = { path: "photo.jpg", sha256, size: jpeg.length, mime: "image/jpeg" };
  return { views: { kind: "manifest", table: encodeManifestTable([file]), prefix: "" }, blobsDir };
}

function directoryOf(dir: string): Laid {
  const root = join(dir, "site");
  mkdirSync(root);
  const path = join(root, "photo.jpg");
  writeFileSync(path, jpeg);
  utimesSync(path, 1_700_000_000, 1_700_000_000);
  return { views: { kind: "directory", root }, blobsDir: "" };
}

describe.each(ways)("a file over %s", (way) => {
  it.each([
    ["a viewset", manifestOf],
    ["a directory", directoryOf],
  ])("of %s has forms and widths as what is stored has", async (_name, lay) => {
    using dir = tempDir();
    const { views, blobsDir } = lay(dir.path);
    await using scene = await open(way, pictured(), { views }, blobsDir);
    const first = await until("a validator", async () => {
      const got = await scene.ask(undefined, "*/*");
      expect(got).toMatchObject({ text: original, headers: { vary: "Accept" } });
      return got.headers["etag"] === undefined ? undefined : got;
    });
    const { etag } = first.headers;
    const tagOf = (form: string): string => String(etag).replace(/"$/, `-${form}"`);
    const avif = await scene.made("avif");
    expect(avif.headers).toMatchObject({ "content-type": "image/avif", etag: tagOf("avif") });
    const narrow = await scene.made("webp-640", "/photo.jpg?width=640", "image/webp");
    expect(narrow.headers).toMatchObject({ "content-type": "image/webp", etag: tagOf("webp-640") });
    expect((await scene.ask(undefined, "*/*")).text).toBe(original);
    const head = await scene.ask(undefined, everything, { method: "HEAD" });
    expect(head.headers).toMatchObject({ etag: tagOf("avif"), "content-length": `${avif.text.length}` }); // prettier-ignore
    const known = await scene.ask(undefined, everything, { headers: { "if-none-match": tagOf("webp") } }); // prettier-ignore
    expect(known).toMatchObject({ status: 304, headers: { vary: "Accept", etag: tagOf("webp") } });
    const part = await scene.ask(undefined, everything, { headers: { range: "bytes=4999-" } });
    expect(part).toMatchObject({ status: 206, headers: { "content-type": "image/jpeg", vary: "Accept" } }); // prettier-ignore
    scene.s.edge.cache.clear(({ path }) => path === "photo.jpg");
    expect(await scene.ask()).toMatchObject({ text: original });
    expect(scene.s.seen).toEqual([]);
  });
});

it("a redirect to https keeps the width", async () => {
  const site: SiteInput = { ...optimized, tls: { redirect_http: true } };
  for (const way of ["lane", "node:http"] as const) {
    await using scene = await open(way, pictured(), { site });
    const { status, headers } = await scene.ask("/photo.jpg?width=640");
    expect([status, headers["location"]]).toEqual([308, "https://www.example.com/photo.jpg?width=640"]); // prettier-ignore
  }
});

it("a miss has its forms made at once, for the next visitor", async () => {
  await using scene = await open("lane", pictured());
  await scene.ask();
  await until("a form", () => scene.s.edge.cache.entries.length === 2);
  expect((await scene.ask()).text).toBe("avif q80 of 5000");
  expect(scene.s.seen).toHaveLength(1);
});

it("a POST keeps its width, and clears what is stored of the picture", async () => {
  await using scene = await open("lane", pictured());
  await scene.made("avif");
  await scene.ask("/photo.jpg?width=640", "*/*", { method: "POST" });
  expect(scene.s.seen.at(-1)?.url).toBe("/photo.jpg?width=640");
  expect(scene.s.edge.cache.entries).toEqual([]);
});

it("a form that is lost gives way to the original", async () => {
  await using scene = await open("node:http", pictured());
  await scene.made("avif");
  const { cache } = scene.s.edge;
  cache.whileOpening = () => {
    for (const [id, { entry }] of cache.rows) if (entry.form !== null) cache.rows.delete(id);
  };
  expect((await scene.ask()).text).toBe(original);
});
