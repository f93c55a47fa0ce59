// The sites of this host on real directories under a real watch: what is valid is in force, what is not says why, and changes are told.

import { renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { LocalSites, LocalSitesOptions } from "../../../src/agent/viewset/local-sites.ts";
import { openChokidar } from "../../../src/agent/viewset/site-watch.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";
import { domain, setUp, text } from "./local-sites-rig.ts";

const compression = (sites: LocalSites): unknown =>
  sites.get(domain)?.devlove?.domains[domain]?.compression;

test("a valid site is in force at once; other domains are none", async () => {
  using dir = tempDir();
  const { sites, views, devloveFile, health, changes } = await setUp(
    dir.path,
    {},
    text({ compression: false }),
  );
  await using open = sites;
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
  expect(compression(open)).not.toBe(false);
  await until("the look", () => compression(open) === false);
  // Although no watch was ever ready.
  await expect(open[Symbol.asyncDispose]()).resolves.toBeUndefined();
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
