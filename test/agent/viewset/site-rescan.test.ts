// What a watch over a site does not tell: events that the kernel dropped, a host without watches, and what lies in the directory that cannot be served.

import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openChokidar } from "../../../src/agent/viewset/site-watch.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";
import { setUp, text } from "./local-sites-rig.ts";

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
  // Nobody reads the kernel's queue meanwhile, and it has room for 16,384 events, two for a new file.
  for (let i = 0; i < 9_000; i++) writeFileSync(join(views, `f${i}`), "x");
  mkdirSync(join(views, "late"));
  const isRescanned = (): boolean => viewChanges.at(-1) === undefined && viewChanges.length > 1;
  await until("the rescan", isRescanned, 120_000);
  await until(
    "the new directory is watched",
    () => {
      writeFileSync(join(views, "late/page.html"), `${performance.now()}`);
      return told().includes("late/page.html");
    },
    120_000,
  );
  expect(viewChanges).toContain(undefined);
}, 300_000);

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
  writeFileSync(join(views, "Index.html"), "another");
  await open.rescan();
  expect(health.list()).toMatchObject([
    {
      severity: "warning",
      text: expect.stringContaining('"index.html" and "Index.html" differ only in case'),
    },
  ]);
  rmSync(join(views, "Index.html"));
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
