// Pictures through the real programs: a photograph of the origin becomes AVIF, WebP and narrower pictures that decode, for those who take them; a clear takes
// them along, what is no picture is sent as it is, and the number of a day holds.

import { spawnSync } from "node:child_process";
import { createServer, type RequestListener } from "node:http";
import { join } from "node:path";
import sharp from "sharp";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { CustomerScript, domain } from "../support/customer-script.ts";
import { Edge, type Visit, type VisitOptions } from "../support/edge.ts";
import { pictureOf } from "../support/pictures.ts";
import { mainFile, node } from "../support/process.ts";
import { until } from "../support/until.ts";

vi.setConfig({ testTimeout: 180_000 });

const photograph = { width: 1_200, height: 800 };
const everything = "image/avif,image/webp,image/*,*/*;q=0.8";
const stack = new AsyncDisposableStack();
let edge: Edge;
let script: CustomerScript;
let jpeg: Buffer;
let png: Buffer;
const asked: string[] = [];

async function openOrigin(handler: RequestListener): Promise<string> {
  const server = createServer(handler);
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  stack.defer(() => {
    server.close();
    server.closeAllConnections();
  });
  const address = server.address();
  return `http://127.0.0.1:${address !== null && typeof address === "object" ? address.port : 0}`;
}

/** Gets a devlove into force, under a name that was not used before. */
async function activate(name: string, site: object): Promise<void> {
  const { api } = edge;
  const content = JSON.stringify({ domains: { [domain]: site } });
  const posted = await api.post(`/${domain}/devlove/${name}/`, { schema: "devlove/1", content });
  expect(posted.status).toBe(201);
  const versions = (await api.get(`/active-viewset/${domain}/`)).body as {
    readonly id: number;
    readonly name: string;
  }[];
  const { id } = versions.find((one) => one.name === name) ?? {};
  const at = `/active-viewset/${domain}/${id}/`;
  expect((await api.put(at, {})).status).toBe(200);
  await until("the activation", async () => {
    const { body } = await api.get(at);
    return (body as { activation: string }).activation === "applied";
  });
}

beforeAll(async () => {
  [jpeg, png] = await Promise.all([
    pictureOf("jpeg", photograph),
    pictureOf("png", { width: 400, height: 300 }),
  ]);
  const bodies: Readonly<Record<string, readonly [type: string, body: Buffer]>> = {
    "/photo.jpg": ["image/jpeg", jpeg],
    "/shot.png": ["image/png", png],
    "/late.jpg": ["image/jpeg", jpeg],
    "/page.jpg": ["image/jpeg", Buffer.alloc(5_000, "<script>alert(1)</script>")],
    "/cut.jpg": ["image/jpeg", jpeg.subarray(0, 4_000)],
  };
  const url = await openOrigin((request, response) => {
    asked.push(request.url ?? "");
    const [type, body] = bodies[request.url ?? ""] ?? ["text/plain", Buffer.from("nothing")];
    response.writeHead(200, {
      "Content-Type": type,
      "Content-Length": body.length,
      "Cache-Control": "max-age=3600",
      "X-Content-Type-Options": "nosniff",
      ETag: '"v1"',
    });
    response.end(body);
  });
  edge = stack.use(await Edge.prepare());
  await edge.startCentral();
  script = new CustomerScript(edge, url, "images");
  await script.enrol();
  await edge.startAgent();
  for (const { name, run } of script.steps()) if (name === "domain") await run();
  const images = { optimize: true, widths: [320, 2_400] };
  await activate("images", { backend: { urls: [url], retries: 0 }, images });
}, 300_000);

afterAll(async () => stack[Symbol.asyncDispose]());

const get = async (
  path: string,
  accept = everything,
  { headers, ...options }: VisitOptions = {},
): Promise<Visit> =>
  edge.visit(path, { host: domain, ...options, headers: { accept, ...headers } });

/** Asks until the picture comes in that type, and smaller than the original. */
async function made(path: string, type: string, accept = everything): Promise<Visit> {
  return until(`${path} as ${type}`, async () => {
    const answer = await get(path, accept);
    expect(answer.status).toBe(200);
    const isForm = answer.headers["etag"] !== '"v1"';
    return isForm && answer.headers["content-type"] === type ? answer : undefined;
  });
}

async function sizeOf({ body }: Visit): Promise<string> {
  const { format, width, height } = await sharp(body).metadata();
  return `${format} ${width}x${height}`;
}

test("a photograph comes as AVIF and as WebP, which decode, and as it is to all others", async () => {
  const first = await get("/photo.jpg");
  expect([first.headers["content-type"], first.body.equals(jpeg)]).toEqual(["image/jpeg", true]);
  const avif = await made("/photo.jpg", "image/avif");
  expect(await sizeOf(avif)).toBe("heif 1200x800");
  const webp = await made("/photo.jpg", "image/webp", "image/webp,*/*");
  expect(await sizeOf(webp)).toBe("webp 1200x800");
  const plain = await get("/photo.jpg", "*/*");
  expect(plain.body.equals(jpeg)).toBe(true);
  for (const [answer, etag] of [
    [first, '"v1"'],
    [avif, '"v1-avif"'],
    [webp, '"v1-webp"'],
    [plain, '"v1"'],
  ] as const) {
    expect(answer.headers).toMatchObject({ vary: "Accept", etag, "x-content-type-options": "nosniff" }); // prettier-ignore
    expect(answer.headers["content-length"]).toBe(`${answer.body.length}`);
  }
  expect(Math.max(avif.body.length, webp.body.length)).toBeLessThan(jpeg.length * 0.9);
  const known = await get("/photo.jpg", everything, { headers: { "if-none-match": '"v1-avif"' } });
  expect([known.status, known.headers["etag"], known.body.length]).toEqual([304, '"v1-avif"', 0]);
  const part = await get("/photo.jpg", everything, { headers: { range: "bytes=10-19" } });
  expect([part.status, part.body.equals(jpeg.subarray(10, 20))]).toEqual([206, true]);
  const head = await get("/photo.jpg", everything, { method: "HEAD" });
  expect([head.body.length, head.headers["content-length"]]).toEqual([0, `${avif.body.length}`]);
  expect(asked.filter((url) => url.startsWith("/photo.jpg"))).toEqual(["/photo.jpg"]);
});

test("a listed width is made of the same answer, never wider than it is; another is the origin's", async () => {
  expect(await sizeOf(await made("/photo.jpg?width=320", "image/avif"))).toBe("heif 320x213");
  expect(await sizeOf(await made("/photo.jpg?width=320", "image/jpeg", "*/*"))).toBe("jpeg 320x213"); // prettier-ignore
  expect(await sizeOf(await made("/photo.jpg?width=2400", "image/webp", "image/webp"))).toBe("webp 1200x800"); // prettier-ignore
  expect(await sizeOf(await made("/shot.png?width=320", "image/png", "*/*"))).toBe("png 320x240");
  await get("/photo.jpg?width=321");
  const urls = asked.filter((url) => url.startsWith("/photo.jpg"));
  expect(urls).toEqual(["/photo.jpg", "/photo.jpg?width=321"]);
  const where = ["--state-dir", join(edge.dir, "agent")];
  const args = [mainFile, "agent", "why", `http://${domain}/photo.jpg?width=320`, ...where];
  const { stdout } = spawnSync(node, args, { encoding: "utf8" });
  expect(stdout).toContain("a picture, 320 pixels wide: cached as the URL without the width");
  expect(stdout).toContain("image variants: avif, webp; widths 320, 2400");
  for (const form of ["avif", "webp", "avif-320", "same-320", "webp-2400"])
    expect(stdout).toMatch(new RegExp(`generated 200 image/jpeg ${form}, \\d+ bytes, fresh`));
});

test("a clear by media type takes a picture with its forms, and they are made anew", async () => {
  await made("/shot.png", "image/avif", "image/avif,*/*");
  const before = asked.length;
  const cleared = await edge.api.post(`/clear-accelerator-cache/${domain}/?wait=30`, {
    url_path_patterns: ['mime:^"image/png"'],
  });
  expect(cleared.status).toBe(200);
  const again = await get("/shot.png?width=320");
  expect(again.body.equals(png)).toBe(true);
  expect(asked.slice(before)).toEqual(["/shot.png"]);
  expect(await sizeOf(await made("/shot.png", "image/avif", "image/avif,*/*"))).toBe(
    "heif 400x300",
  );
  // The photograph kept its own.
  expect((await get("/photo.jpg")).headers["etag"]).toBe('"v1-avif"');
});

test("what is no whole picture is sent as it came, and counted", async () => {
  for (const path of ["/page.jpg", "/cut.jpg"]) {
    const first = await get(path);
    expect(first.headers["content-type"]).toBe("image/jpeg");
    await until(`${path} was looked at`, async () => {
      const answer = await get(path);
      expect(answer.body.equals(first.body)).toBe(true);
      const metrics = await (await fetch(`http://127.0.0.1:${edge.ports.metrics}/metrics/deployment`)).text(); // prettier-ignore
      const line = /image_variants_total\{[^}]*outcome="unreadable"[^}]*\} (\d+)/.exec(metrics);
      return Number(line?.[1] ?? 0) >= (path === "/page.jpg" ? 1 : 2);
    });
  }
});

test("when the number of the day is used up, the original is sent, and what is there stays", async () => {
  const url = script.originUrl;
  await activate("spent", {
    backend: { urls: [url], retries: 0 },
    images: { optimize: true, variants_per_day_max: 1 },
  });
  await until("it is told", async () => {
    const answer = await get("/late.jpg");
    expect(answer.body.equals(jpeg)).toBe(true);
    const metrics = await (await fetch(`http://127.0.0.1:${edge.ports.metrics}/metrics/deployment`)).text(); // prettier-ignore
    return /image_variants_total\{[^}]*outcome="blocked"/.test(metrics);
  });
  expect((await get("/photo.jpg")).headers["etag"]).toBe('"v1-avif"');
});
