// `npm start` as its users meet it: it serves, takes any folder as its site, resumes, accounts for every request.

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { dirname, extname, join, relative } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readAccessLog } from "../support/access-log.ts";
import { freePortBase, inParallel, openVisitor, startDemo, type Places } from "../support/demo.ts";
import { Program } from "../support/process.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";
import { Api } from "../support/edge.ts";
import { walkLogs } from "../support/customer-script.ts";

const accessLog = join(
  import.meta.dirname,
  "../../../shared/data/logs/semicomplete_apache_combined_10k.log",
);
const bigSite = process.env["ACCEL_BIG_SITE"] ?? "";
const dir = tempDir();
const state = join(dir.path, "state");
let base = 0;
let demo: Program | undefined;
let places: Places;

beforeAll(async () => {
  base = await freePortBase();
  const started = await startDemo(state, base);
  demo = started.program;
  places = started.places();
}, 400_000);

afterAll(async () => {
  await demo?.[Symbol.asyncDispose]();
  dir[Symbol.dispose]();
});

test("it tells where everything is and what to try", async () => {
  // demo.json is there before the last of what it says has come through the pipe.
  await until("all is told", () => demo?.said.includes("Ctrl-C stops it") === true);
  for (const url of [
    places.central_url,
    places.accelerator_url,
    places.metrics_url,
    places.backend_url,
  ])
    expect(demo?.said).toContain(url);
  for (const part of [
    "clear-accelerator-cache",
    "mark-as-bad-bot",
    "incominglogs",
    "unknown_bots_can_access",
  ])
    expect(demo?.said).toContain(part);
});

test.skipIf(!existsSync(accessLog))(
  "10,000 real requests replayed: none fails by us, and the incoming logs account for each exactly once",
  async () => {
    const requests = readAccessLog(accessLog);
    expect(requests).toHaveLength(10_000);
    const api = new Api(places.central_url);
    api.token = places.api_token;
    const expected: string[] = [];
    using visitor = openVisitor(places.accelerator_url, 16);
    await inParallel(requests, 16, async ({ method, target, ip, userAgent }) => {
      const { status } = await visitor.visit(target, {
        method,
        headers: {
          "x-forwarded-for": ip,
          ...(userAgent === undefined ? {} : { "user-agent": userAgent }),
        },
      });
      expect(status).toBeLessThan(500);
      expected.push(`${method} ${target} ${status}`);
    });
    const seen = await until(
      "all records at central",
      async () => {
        const rows = await walkLogs(api, places.deployment_site_id, places.domain); // These are the demo's first visitors.
        return rows.length >= requests.length && rows;
      },
      180_000,
    );
    expect(
      seen
        .map(
          ({ request_method: method, uri_path: target, response_status: status }) =>
            `${method} ${target} ${status}`,
        )
        .sort(),
    ).toEqual(expected.sort());
    expect(
      seen.some(({ uri_path: target }) => target === "/scripts/grok-py-test/configlib.py"),
    ).toBe(true);
  },
  400_000,
);

test("the site, the backend behind it and a hit", async () => {
  using visitor = openVisitor(places.accelerator_url, 2);
  const front = await visitor.visit("/");
  expect(front.status).toBe(200);
  expect(front.headers["content-type"]).toBe("text/html; charset=utf-8");
  expect((await visitor.visit("/api/clock")).status).toBe(200);
  expect((await visitor.visit("/nothing/here")).status).toBe(404);
  await until("a hit", async () =>
    String((await visitor.visit("/generated/card.svg?seed=1")).headers["cache-status"]).includes(
      "hit",
    ),
  );
});

test("stopped by SIGTERM it leaves nothing running; started again it goes on from there", async () => {
  expect(await demo?.terminate()).toBe(0);
  expect(existsSync(join(state, "demo.json"))).toBe(false);
  const again = await startDemo(state, base);
  demo = again.program;
  expect(again.places()).toEqual(places);
  expect(demo.said).not.toContain("import");
  using visitor = openVisitor(places.accelerator_url, 1);
  expect((await visitor.visit("/")).status).toBe(200);
}, 400_000);

test("a second one on the same state directory is refused", async () => {
  const options = ["--state", state, "--port-base", String(await freePortBase())];
  await using second = await Program.start(["agent", "demo", ...options]);
  expect(await second.exited()).toBe(1);
  expect(second.said).toContain("in use by another process");
}, 120_000);

/** Every file of a folder through the accelerator: 200, the right bytes, the right type. */
async function compareSite(
  root: string,
  url: string,
  types: Readonly<Record<string, string>>,
): Promise<number> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  using visitor = openVisitor(url, 8);
  const digest = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
  const wrong: string[] = [];
  await inParallel(files, 8, async (file) => {
    const path = `/${relative(root, file).split("/").map(encodeURIComponent).join("/")}`;
    const { status, headers, body } = await visitor.visit(path);
    const type = String(headers["content-type"]).split(";")[0];
    if (
      status !== 200 ||
      digest(body) !== digest(readFileSync(file)) ||
      type !== (types[extname(file)] ?? type)
    )
      wrong.push(`${path}: ${status} ${type}`);
  });
  expect(wrong).toEqual([]);
  return files.length;
}

const types = {
  ".html": "text/html",
  ".css": "text/css",
  ".js": "text/javascript",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".gif": "image/gif",
  ".jpg": "image/jpeg",
  ".txt": "text/plain",
  "": "application/octet-stream",
};

test("any folder is a site: odd names, many files, empty ones", async () => {
  const site = join(dir.path, "site");
  const names = [
    "index.html",
    "a b.txt",
    "ümläut/日本.html",
    "100%.txt",
    "q?x=1.txt",
    "#.html",
    "empty.css",
    "deep/er/than/that/x.js",
    "no-type",
    "+plus.svg",
    "semi;colon.html",
    "quote's.html",
    ...Array.from({ length: 400 }, (_, i) => `many/${i % 20}/${i}.html`),
  ];
  for (const name of names) {
    mkdirSync(dirname(join(site, name)), { recursive: true });
    writeFileSync(join(site, name), name === "empty.css" ? "" : `content of ${name}`);
  }
  const { program, places: found } = await startDemo(join(dir.path, "odd"), await freePortBase(), [
    "--site",
    site,
  ]);
  await using _ = program;
  expect(await compareSite(site, found().accelerator_url, types)).toBe(names.length);
  expect(program.said).toMatch(/imported \d+ files/);
}, 400_000);

test.skipIf(bigSite === "")(
  "a site of ten thousand files (set ACCEL_BIG_SITE to a folder, e.g. of openjdk-17-doc)",
  async () => {
    const { program, places: found } = await startDemo(
      join(dir.path, "big"),
      await freePortBase(),
      ["--site", bigSite],
    );
    await using _ = program;
    expect(await compareSite(bigSite, found().accelerator_url, types)).toBeGreaterThan(5_000);
  },
  600_000,
);
