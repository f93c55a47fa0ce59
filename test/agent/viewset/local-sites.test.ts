// The sites of this host on real directories under a real watch: what is valid is in force, what is not says why, and changes are told.

import { execFileSync } from "node:child_process";
import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { LocalSites as SteeringLocalSites } from "../../../src/agent/steering/ports.ts";
import type { SiteNames } from "../../../src/agent/viewset/devlove-text.ts";
import {
  openLocalSites,
  type LocalSites,
  type LocalSitesOptions,
} from "../../../src/agent/viewset/local-sites.ts";
import { openChokidar } from "../../../src/agent/viewset/site-watch.ts";
import { Health } from "../../../src/base/health.ts";
import { silentLog } from "../../../src/base/log.ts";
import { Registry } from "../../../src/base/metrics.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";

const domain = "www.example.com";
const text = (config: object, host = domain): string =>
  JSON.stringify({ domains: { [host]: config } });

async function setUp(path: string, options: Partial<LocalSitesOptions> = {}, file?: string) {
  const views = join(path, "views");
  const devloveFile = join(path, "devlove.json");
  await mkdir(views, { recursive: true });
  if (file !== undefined) await writeFile(devloveFile, file);
  const health = new Health(() => new Date(0));
  const changes: string[] = [];
  const viewChanges: (readonly string[] | undefined)[] = [];
  const registry = new Registry();
  let names: SiteNames | undefined = { name: domain, subDomains: [] };
  const sites = await openLocalSites({
    sites: [{ domain, views_dir: views, devlove_file: devloveFile }],
    watchViews: true,
    names: () => names,
    backendRules: {},
    onChange: (changed) => changes.push(changed),
    onViews: (_, paths) => viewChanges.push(paths),
    registry,
    health,
    log: silentLog(),
    stop: new AbortController().signal,
    ...options,
  });
  const valueOf = async (name: string): Promise<unknown> =>
    (await registry.getSingleMetric(name)?.get())?.values[0]?.value;
  return {
    counted: async () => [
      await valueOf("accel_agent_site_files"),
      await valueOf("accel_agent_site_bytes"),
    ],
    views,
    devloveFile,
    health,
    changes,
    viewChanges,
    sites,
    rename: (next: SiteNames | undefined) => (names = next),
    told: () => viewChanges.flatMap((paths) => paths ?? ["everything"]),
  };
}

const compression = (sites: LocalSites): unknown =>
  sites.get(domain)?.devlove?.domains[domain]?.compression;

test("a valid site is in force at once; other domains are none", async () => {
  using dir = tempDir();
  const { sites, views, devloveFile, health, changes } = await setUp(
    dir.path,
    {},
    text({ compression: false }),
  );
  await using open: SteeringLocalSites & AsyncDisposable = sites;
  expect(open.get(domain)).toEqual({
    viewsDir: views,
    devlove: { domains: { [domain]: { compression: false } } },
    devloveFile,
  });
  expect(open.get("www.example.org")).toBeUndefined();
  expect(health.list()).toEqual([]);
  expect(changes).toEqual([]);
});

test("an edit takes effect, written in place or by a file that is renamed over it", async () => {
  using dir = tempDir();
  const { sites, devloveFile, changes } = await setUp(dir.path, {}, text({}));
  await using open = sites;
  await open.watching();
  writeFileSync(devloveFile, text({ compression: false }));
  await until("the edit", () => compression(open) === false);
  expect(changes).toEqual([domain]);
  writeFileSync(`${devloveFile}.new`, text({}));
  renameSync(`${devloveFile}.new`, devloveFile);
  await until("the replacement", () => compression(open) === undefined);
  writeFileSync(devloveFile, text({ compression: false }));
  await until("an edit after the replacement", () => compression(open) === false);
  expect(changes.length).toBe(3);
});

test("an invalid edit leaves the last good one in force and says all that is wrong; a good one ends that", async () => {
  using dir = tempDir();
  const { sites, devloveFile, health, changes } = await setUp(dir.path, {}, text({}));
  await using open = sites;
  await open.watching();
  writeFileSync(devloveFile, text({ compresion: 1, index: 2 }));
  await until("the warning", () => health.list().length === 1);
  const [warning] = health.list();
  expect(warning).toMatchObject({ code: "local_site_invalid", severity: "warning" });
  expect(warning?.text).toContain(devloveFile);
  expect(warning?.text).toMatch(/compresion.*did you mean compression\?/);
  expect(warning?.text).toMatch(/\/index/);
  expect(open.get(domain)?.devlove).toEqual({ domains: { [domain]: {} } });
  rmSync(devloveFile);
  await until("the file is missed", () => health.list()[0]?.text.includes("does not exist"));
  expect(open.get(domain)?.devlove).not.toBeNull();
  expect(changes).toEqual([]);
  writeFileSync(devloveFile, text({ compression: false }));
  await until("the correction", () => compression(open) === false);
  expect(health.list()).toEqual([]);
});

test.each([
  ["missing", undefined, /does not exist/],
  ["no JSON", "{", /line 1, column 2/],
  ["too large", " ".repeat(2 * 2 ** 20), /at most 1 MiB/],
])(
  "%s at start: an error in health, and taken when it is put right",
  async (_, content, reason) => {
    using dir = tempDir();
    const { sites, devloveFile, health, changes } = await setUp(dir.path, {}, content);
    await using open = sites;
    expect(open.get(domain)?.devlove).toBeNull();
    expect(health.list()).toMatchObject([
      { code: "local_site_invalid", severity: "error", text: expect.stringMatching(reason) },
    ]);
    await open.watching();
    writeFileSync(devloveFile, text({ compression: false }));
    await until("the devlove", () => compression(open) === false);
    expect(changes).toEqual([domain]);
    expect(health.list()).toEqual([]);
  },
);

test("changed views are told below the root, hidden ones not", async () => {
  using dir = tempDir();
  const { sites, views, told } = await setUp(dir.path, {}, text({}));
  await using open = sites;
  await open.watching();
  await mkdir(join(views, "a"));
  await mkdir(join(views, ".git"));
  await writeFile(join(views, ".git", "index"), "x");
  await writeFile(join(views, "a", "page.html~"), "x");
  await writeFile(join(views, "index.html"), "x");
  await until("both", () => told().includes("index.html") && told().includes("a/page.html~"));
  rmSync(join(views, "index.html"));
  await until("the removal", () => told().filter((path) => path === "index.html").length > 1);
  expect(told().filter((path) => path.includes(".git"))).toEqual([]);
});

test("without watch_views only the devlove file is watched", async () => {
  using dir = tempDir();
  const { sites, views, devloveFile, told } = await setUp(
    dir.path,
    { watchViews: false },
    text({}),
  );
  await using open = sites;
  await open.watching();
  await writeFile(join(views, "index.html"), "x");
  writeFileSync(devloveFile, text({ compression: false }));
  await until("the edit", () => compression(open) === false);
  expect(told()).toEqual([]);
});

test("who may be named follows the names that central gives", async () => {
  using dir = tempDir();
  const sub = "static.example.com";
  const both = JSON.stringify({ domains: { [domain]: {}, [sub]: {} } });
  const { sites, health, changes, rename } = await setUp(dir.path, {}, both);
  await using open = sites;
  expect(open.get(domain)?.devlove).toBeNull();
  expect(health.list()[0]?.text).toContain(sub);
  rename({ name: domain, subDomains: [sub] });
  await open.look();
  expect(open.get(domain)?.devlove).not.toBeNull();
  expect(health.list()).toEqual([]);
  expect(changes).toEqual([domain]);
  rename({ name: domain, subDomains: [] });
  await open.look();
  expect(open.get(domain)?.devlove).not.toBeNull();
  expect(health.list()).toMatchObject([{ severity: "warning" }]);
});

test("before it is known which names a domain has, the document may name any", async () => {
  using dir = tempDir();
  const both = JSON.stringify({ domains: { [domain]: {}, "static.example.com": {} } });
  const { sites, health } = await setUp(dir.path, { names: () => undefined }, both);
  await using open = sites;
  expect(open.get(domain)?.devlove).not.toBeNull();
  expect(health.list()).toEqual([]);
});

test("what the watch did not tell is found by looking", async () => {
  using dir = tempDir();
  const deaf: LocalSitesOptions["openWatcher"] = (_, options) => openChokidar([], options);
  const options = { openWatcher: deaf, lookIntervalMs: 50 };
  const { sites, devloveFile } = await setUp(dir.path, options, text({}));
  const open = sites;
  writeFileSync(devloveFile, text({ compression: false }));
  await until("the look", () => compression(open) === false);
  await open[Symbol.asyncDispose](); // Although no watch was ever ready.
});

test("another release behind the link to the views: everything changed, and it is watched", async () => {
  using dir = tempDir();
  await mkdir(join(dir.path, "r1"));
  await mkdir(join(dir.path, "r2"));
  symlinkSync("r1", join(dir.path, "current"));
  const location = {
    domain,
    views_dir: join(dir.path, "current"),
    devlove_file: join(dir.path, "devlove.json"),
  };
  const { sites, told } = await setUp(dir.path, { sites: [location] }, text({}));
  await using open = sites;
  await open.watching();
  unlinkSync(location.views_dir);
  symlinkSync("r2", location.views_dir);
  await open.look();
  expect(told()).toEqual(["everything"]);
  await until("the new release is watched", async () => {
    await writeFile(join(dir.path, "r2", "index.html"), `${performance.now()}`);
    return told().includes("index.html");
  });
});

test("a views directory that does not exist is a warning", async () => {
  using dir = tempDir();
  const location = {
    domain,
    views_dir: join(dir.path, "nowhere"),
    devlove_file: join(dir.path, "devlove.json"),
  };
  const { sites, health, viewChanges } = await setUp(dir.path, { sites: [location] }, text({}));
  await using open = sites;
  expect(health.list()).toMatchObject([
    { text: expect.stringContaining("nowhere does not exist") },
  ]);
  await mkdir(location.views_dir);
  await open.look();
  expect(health.list()).toEqual([]);
  expect(viewChanges).toEqual([undefined]);
});

test("a host without watches left is polled, and says so", async () => {
  using dir = tempDir();
  const backends: unknown[] = [];
  const { sites, views, health, told } = await setUp(
    dir.path,
    {
      openWatcher: (paths, options) => {
        backends.push(options.backend);
        if (options.backend === "polling")
          return openChokidar(paths, { ...options, pollingInterval: 20 });
        const watcher = openChokidar([], options);
        const error = Object.assign(new Error("no space left for watches"), { code: "ENOSPC" });
        queueMicrotask(() => watcher.emit("error", error));
        return watcher;
      },
    },
    text({}),
  );
  await using open = sites;
  await open.watching();
  expect(backends.filter((backend) => backend === "polling").length).toBe(2); // File and views.
  expect(health.list()).toMatchObject([
    { code: "local_site_polled", text: expect.stringContaining("no space left for watches") },
  ]);
  await writeFile(join(views, "index.html"), "x");
  await until("the change", () => told().includes("index.html"));
});

test("a host that has watches again is watched again at the next rescan", async () => {
  using dir = tempDir();
  let isShort = true;
  const { sites, health, viewChanges } = await setUp(
    dir.path,
    {
      openWatcher: (paths, options) => {
        const watcher = openChokidar(paths, { ...options, pollingInterval: 20 });
        const error = Object.assign(new Error("no watches left"), { code: "ENOSPC" });
        if (isShort && options.backend !== "polling")
          queueMicrotask(() => watcher.emit("error", error));
        return watcher;
      },
    },
    text({}),
  );
  await using open = sites;
  await open.watching();
  const polled = (): boolean => health.list().some(({ code }) => code === "local_site_polled");
  expect(polled()).toBe(true);
  await open.rescan();
  expect(polled()).toBe(true);
  isShort = false;
  const before = viewChanges.length;
  await open.rescan();
  expect(polled()).toBe(false);
  expect(viewChanges.slice(before)).toContain(undefined);
});

test("after a burst that the kernel lost events of, everything is told and new directories are watched", async () => {
  using dir = tempDir();
  const { sites, views, viewChanges, told } = await setUp(dir.path, {}, text({}));
  await using open = sites;
  await open.watching();
  // Nobody reads the kernel's queue meanwhile, and it has room for 16,384 events.
  for (let i = 0; i < 12_000; i++) writeFileSync(join(views, `f${i}`), "x");
  mkdirSync(join(views, "late"));
  const isRescanned = (): boolean => viewChanges.at(-1) === undefined && viewChanges.length > 1;
  await until("the rescan", isRescanned, 30_000);
  await until("the new directory is watched", () => {
    writeFileSync(join(views, "late/page.html"), `${performance.now()}`);
    return told().includes("late/page.html");
  });
}, 60_000);

test("what a directory holds is counted, and what cannot be served or imported is said", async () => {
  using dir = tempDir();
  const { sites, views, devloveFile, health, counted } = await setUp(dir.path, {}, text({}));
  await using open = sites;
  writeFileSync(join(views, "index.html"), "12345");
  mkdirSync(join(views, ".git"));
  writeFileSync(join(views, ".git/config"), "hidden");
  symlinkSync(devloveFile, join(views, "devlove.json"));
  await open.rescan();
  expect(await counted()).toEqual([1, 5]);
  expect(health.list()).toMatchObject([
    {
      code: "local_site_odd",
      severity: "info",
      text: expect.stringContaining("devlove.json (a link out of views_dir)"),
    },
  ]);
  rmSync(join(views, "devlove.json"));
  const odd = Buffer.concat([Buffer.from(`${views}/caf`), Buffer.from([0xe9])]);
  writeFileSync(odd, "latin1");
  await open.rescan();
  expect(health.list()).toMatchObject([
    { severity: "warning", text: expect.stringContaining("caf\\xe9") },
  ]);
  rmSync(odd);
  writeFileSync(join(views, "index.html"), "123");
  await open.rescan();
  expect(health.list()).toEqual([]);
  expect(await counted()).toEqual([1, 3]);
});

test("a path that is longer than the system takes is said", async () => {
  using dir = tempDir();
  const { sites, views, health } = await setUp(dir.path, {}, text({}));
  await using open = sites;
  const deep = "d".repeat(200);
  const script = `for i in $(seq 20); do mkdir ${deep}; cd ${deep}; done; echo x > ${"p".repeat(100)}`;
  execFileSync("sh", ["-c", script], { cwd: views });
  await open.rescan();
  expect(health.list()).toMatchObject([
    {
      severity: "warning",
      text: expect.stringMatching(/d….*\(4120 characters\) is longer than 4096/),
    },
  ]);
  execFileSync("rm", ["-rf", deep], { cwd: views });
});

test("many changes at once are told as everything", async () => {
  using dir = tempDir();
  const { sites, viewChanges } = await setUp(
    dir.path,
    {
      openWatcher: (_, options) => {
        const watcher = openChokidar([], options);
        setImmediate(() => {
          for (let i = 0; i < 1_001; i++) watcher.emit("change", `/f${i}`);
        });
        return watcher;
      },
    },
    text({}),
  );
  await using open = sites;
  await until("it is told", () => viewChanges.length > 0);
  expect(viewChanges).toEqual([undefined]);
  expect(open.get(domain)).toBeDefined();
});
