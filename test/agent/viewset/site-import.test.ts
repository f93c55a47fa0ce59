// Import of real directories to a central in memory: the whole site, once, in order, with its failures named.

import { execFileSync } from "node:child_process";
import { chmodSync, rmSync, writeFileSync } from "node:fs";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { ProgressMeter } from "../../../src/agent/viewset/import-progress.ts";
import { openViewsets } from "../../../src/agent/viewset/viewsets.ts";
import { Health } from "../../../src/base/health.ts";
import { silentLog } from "../../../src/base/log.ts";
import { Registry } from "../../../src/base/metrics.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { digest, FakeCentral } from "./fake-central.ts";
import type { RunningImport } from "../../../src/wire/channel.ts";
import type { SiteLocation } from "../../../src/agent/viewset/site-walk.ts";

const never = new AbortController().signal;
const names = { name: "www.example.com", subDomains: [] };
const devlove = '{ "domains": { "www.example.com": {} } }';

async function setUp(
  path: string,
  devloveFile = join(path, "devlove.json"),
  more: Partial<SiteLocation> = {},
) {
  const central = new FakeCentral();
  const registry = new Registry();
  const progress: RunningImport[] = [];
  const views = join(path, "views");
  await mkdir(views, { recursive: true });
  await writeFile(devloveFile, devlove);
  const viewsets = await openViewsets({
    stateDir: join(path, "state"),
    central,
    sites: [{ domain: names.name, views_dir: views, devlove_file: devloveFile, ...more }],
    backendRules: {},
    onProgress: (message) => progress.push(message),
    registry,
    health: new Health(() => new Date(0)),
    log: silentLog(),
    stop: never,
  });
  return {
    central,
    viewsets,
    progress,
    views,
    devloveFile,
    run: async () => viewsets.importSite("i1", names, never),
    put: async (file: string, content: string | Uint8Array): Promise<void> => {
      await mkdir(dirname(join(views, file)), { recursive: true });
      await writeFile(join(views, file), content);
    },
    outcomes: async (): Promise<unknown> =>
      (await registry.getSingleMetric("accel_agent_viewset_imports_total")?.get())?.values,
  };
}

test("the site arrives whole: sorted, typed, hidden files left out, editors' leftovers kept", async () => {
  using dir = tempDir();
  const { central, run, put, outcomes } = await setUp(dir.path);
  await put("z.html", "<p>z");
  await put("a/ünï.css", "a{}");
  await put("a/page.html~", "<p>old");
  await put("4913", "probe");
  await put("noext", "?");
  await put(".git/config", "hidden");
  await put(".#lock", "hidden");
  await put(".well-known/security.txt", "Contact: mailto:x@example.com");
  await put("empty.js", "");
  const done = await run();
  const manifest = central.manifest(done.manifest);
  expect(manifest.devlove).toEqual({ schema: "devlove/1", sha256: digest(devlove) });
  expect(manifest.files?.map(({ path, mime }) => [path, mime])).toEqual([
    [".well-known/security.txt", "text/plain"],
    ["4913", "application/octet-stream"],
    ["a/page.html~", "application/octet-stream"],
    ["a/ünï.css", "text/css"],
    ["empty.js", "text/javascript"],
    ["noext", "application/octet-stream"],
    ["z.html", "text/html"],
  ]);
  for (const { sha256, size } of manifest.files ?? [])
    expect(central.blobs.get(sha256)?.length).toBe(size);
  expect(central.blobs.has(digest(devlove))).toBe(true);
  const bytes = manifest.files?.reduce((sum, { size }) => sum + size, 0);
  expect(done).toMatchObject({ files: 7, bytes, left_out: 0 });
  expect(central.uploaded.at(-1)).toBe(done.manifest);
  expect(await outcomes()).toEqual([{ labels: { outcome: "done" }, value: 1 }]);
});

test("the devlove file is no view, wherever it lies", async () => {
  using dir = tempDir();
  await mkdir(join(dir.path, "views"));
  const { central, run, put } = await setUp(dir.path, join(dir.path, "views", "devlove.json"));
  await put("index.html", "<p>home");
  const { manifest } = await run();
  expect(central.manifest(manifest).files?.map(({ path }) => path)).toEqual(["index.html"]);
});

test("names that differ only in case are refused, all of them named, unless the setting says that they are meant", async () => {
  using dir = tempDir();
  const { central, run, put, views, devloveFile } = await setUp(dir.path);
  await put("class.Button.html", "the class");
  await put("class.button.html", "another");
  await put("Guide/index.html", "1");
  await put("guide/other.html", "2");
  await put(".Hidden", "no view");
  await put(".hidden", "no view");
  await put("Devlove.json", "another file");
  await symlink(devloveFile, join(views, "devlove.json"));
  await symlink("/etc", join(views, "GUIDE"));
  await expect(run()).rejects.toMatchObject({
    code: "IMPORT_IMPOSSIBLE",
    message: expect.stringMatching(
      /views: "class\.button\.html" and "class\.Button\.html" differ only in case; "guide" and "Guide" differ only in case\. If both are intended, set paths_differ_in_case /,
    ),
  });
  expect(central.uploaded).toEqual([]);
  const meant = await setUp(dir.path, undefined, { paths_differ_in_case: true });
  const manifest = meant.central.manifest((await meant.run()).manifest);
  expect(manifest.paths_differ_in_case).toBe(true);
  expect(manifest.files?.length).toBe(5);
});

test("the setting changes nothing of a site without such names", async () => {
  using dir = tempDir();
  const { run, put } = await setUp(dir.path);
  await put("index.html", "<p>home");
  const meant = await setUp(dir.path, undefined, { paths_differ_in_case: true });
  expect((await meant.run()).manifest).toBe((await run()).manifest);
});

test("2,000 files of 300 contents: progress never goes back, uploads are bounded, a second import moves nothing", async () => {
  using dir = tempDir();
  const { central, run, put, progress, views } = await setUp(dir.path);
  for (let i = 0; i < 2_000; i++) await put(`d${i % 41}/f${i}.html`, `<p>page ${i % 300}`);
  const done = await run();
  expect(done.files).toBe(2_000);
  expect(central.uploaded.length).toBe(300 + 2);
  expect(central.runningMost).toBeLessThanOrEqual(6);
  const order = ["reading", "uploading"];
  progress.slice(1).forEach((message, i) => {
    const before = progress[i];
    if (before === undefined) throw new Error("there is one before");
    expect(order.indexOf(message.phase)).toBeGreaterThanOrEqual(order.indexOf(before.phase));
    if (message.phase !== before.phase) return;
    expect(message.files_done).toBeGreaterThanOrEqual(before.files_done);
    expect(message.bytes_done).toBeGreaterThanOrEqual(before.bytes_done);
  });
  expect(progress.at(-1)).toEqual({
    import_id: "i1",
    phase: "uploading",
    files_done: 2_000,
    files_total: 2_000,
    bytes_done: done.bytes,
    bytes_total: done.bytes,
  });
  const again = await run();
  expect(again).toEqual(done);
  expect(central.uploaded.length).toBe(300 + 2);
  writeFileSync(join(views, "d0", "f0.html"), "<p>changed");
  await run();
  expect(central.uploaded.length).toBe(300 + 2 + 2); // The file and the manifest.
});

test("at most four messages a second, and always the last", () => {
  let nowMs = 0;
  const sent: [number, RunningImport][] = [];
  const meter = new ProgressMeter(
    "i1",
    (message) => sent.push([nowMs, message]),
    () => nowMs,
  );
  meter.begin("reading", { files: 1_000, bytes: 5_000 }, { files: 0, bytes: 0 });
  for (let i = 0; i < 1_000; i++, nowMs += 2) meter.add({ files: 1, bytes: 5 });
  meter.end();
  expect(sent.length).toBe(9); // One at the start, 7 more in 2 s, the last one.
  sent
    .slice(1, -1)
    .forEach(([at], i) => expect(at - (sent[i]?.[0] ?? 0)).toBeGreaterThanOrEqual(250));
  expect(sent.at(-1)?.[1]).toMatchObject({ files_done: 1_000, bytes_done: 5_000 });
});

test("an upload that breaks off is central's absence, and the next try sends the rest", async () => {
  using dir = tempDir();
  const { central, run, put } = await setUp(dir.path);
  for (let i = 0; i < 40; i++) await put(`f${i}`, `content ${i}`);
  central.cuts.set(digest("content 20"), 0);
  await expect(run()).rejects.toMatchObject({ code: "CENTRAL_UNREACHABLE" });
  const before = central.uploaded.length;
  await run();
  expect(central.uploaded.length).toBe(42);
  expect(new Set(central.uploaded).size).toBe(42);
  expect(before).toBeLessThan(42);
});

test("links are followed inside the root; those that lead out, nowhere or in circles are named", async () => {
  using dir = tempDir();
  const { central, run, put, views } = await setUp(dir.path);
  await writeFile(join(dir.path, "secret"), "not yours");
  await put("docs/guide/one.html", "<p>1");
  await symlink("docs/guide/one.html", join(views, "same.html"));
  await symlink("docs", join(views, "manual"));
  await symlink("../secret", join(views, "out"));
  await symlink("/etc", join(views, "etc"));
  await symlink("nothing", join(views, "dangling"));
  await symlink("../..", join(views, "docs", "guide", "up"));
  await symlink("itself", join(views, "itself"));
  const done = await run();
  expect(central.manifest(done.manifest).files?.map(({ path }) => path)).toEqual([
    "docs/guide/one.html",
    "manual/guide/one.html",
    "same.html",
  ]);
  expect(done.left_out).toBe(6);
  expect(done.left_out_names).toEqual([
    "dangling (a link to nothing)",
    "docs/guide/up (a link back above itself)",
    "etc (a link out of views_dir)",
    "itself (a link to nothing)",
    "manual/guide/up (a link back above itself)",
    "out (a link out of views_dir)",
  ]);
});

test("what cannot be a file of a viewset is named, all of it", async () => {
  using dir = tempDir();
  const { central, run, put, views, outcomes } = await setUp(dir.path);
  await put("fine.html", "<p>");
  execFileSync("mkfifo", [join(views, "pipe")]);
  writeFileSync(Buffer.concat([Buffer.from(`${views}/caf`), Buffer.from([0xe9])]), "latin1");
  const odd = Buffer.from([0x61, 0x1f, 0x20, 0x21, 0x7e, 0x7f, 0x80]);
  writeFileSync(Buffer.concat([Buffer.from(`${views}/`), odd]), "latin1");
  const refused = run();
  await expect(refused).rejects.toMatchObject({ code: "IMPORT_IMPOSSIBLE" });
  await expect(refused).rejects.toThrow(/"pipe" is neither file nor directory/);
  await expect(refused).rejects.toThrow(/caf\\xe9/);
  await expect(refused).rejects.toThrow(/\(a\\x1f\\x20!~\\x7f\\x80\)/);
  await expect(refused).rejects.not.toThrow(/paths_differ_in_case/); // It would not help.
  expect(central.uploaded).toEqual([]);
  expect(await outcomes()).toEqual([{ labels: { outcome: "refused" }, value: 1 }]);
});

test("an unreadable file is named", async () => {
  using dir = tempDir();
  const { run, put, views } = await setUp(dir.path);
  await put("a/closed.html", "<p>");
  chmodSync(join(views, "a", "closed.html"), 0);
  using _ = asNobody(dir.path);
  await expect(run()).rejects.toThrow(/"a\/closed.html" cannot be read by the agent's user/);
});

/** Root can read all: where the tests run as root, this process is nobody for the while, and the directory nobody's. */
function asNobody(dir: string): Disposable {
  if (process.geteuid?.() !== 0) return { [Symbol.dispose]: () => undefined };
  const nobody = 65_534;
  execFileSync("chown", ["-R", String(nobody), dir]);
  process.seteuid?.(nobody);
  return { [Symbol.dispose]: () => process.seteuid?.(0) };
}

test("a file that changes all the while is named", async () => {
  using dir = tempDir();
  const { run, put, views } = await setUp(dir.path);
  await put("steady.html", "<p>");
  await put("busy.log", "x");
  const write = (): void => writeFileSync(join(views, "busy.log"), `${performance.now()}`);
  const timer = setInterval(write, 2);
  try {
    await expect(run()).rejects.toThrow(/busy\.log keeps changing while it is read/);
  } finally {
    clearInterval(timer);
  }
  await run();
});

test("a site that this host does not have, or has not whole, says so", async () => {
  using dir = tempDir();
  const { viewsets, run, views, devloveFile } = await setUp(dir.path);
  const other = viewsets.importSite("i2", { name: "www.example.org", subDomains: [] }, never);
  await expect(other).rejects.toMatchObject({ code: "IMPORT_NO_SITE" });
  await expect(other).rejects.toThrow(/www\.example\.org/);
  rmSync(views, { recursive: true });
  await expect(run()).rejects.toMatchObject({
    code: "IMPORT_IMPOSSIBLE",
    message: `views_dir ${views} does not exist, or vanished while it was read`,
  });
  writeFileSync(views, "a file");
  await expect(run()).rejects.toThrow(/is no directory/);
  rmSync(devloveFile);
  await expect(run()).rejects.toMatchObject({
    code: "IMPORT_IMPOSSIBLE",
    message: `devlove_file ${devloveFile} does not exist, or vanished while it was read`,
  });
  writeFileSync(devloveFile, '{ "domains": { "www.example.net": {} }, "extra": 1 }');
  await expect(run()).rejects.toMatchObject({ code: "VIEWSET_INVALID" });
  await expect(run()).rejects.toThrow(/www\.example\.net.*extra/);
  writeFileSync(devloveFile, " ".repeat(2 * 2 ** 20));
  await expect(run()).rejects.toMatchObject({ code: "VIEWSET_INVALID" });
});

test("what was imported is what is prepared, without a transfer", async () => {
  using dir = tempDir();
  const { central, viewsets, run, put } = await setUp(dir.path);
  await put("index.html", "<p>home");
  const { manifest } = await run();
  expect(await viewsets.prepare(manifest, names, never)).toMatchObject({ manifest });
  expect(central.asked).toEqual([]);
});
