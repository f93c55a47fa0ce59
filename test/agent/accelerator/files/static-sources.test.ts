// What tells the two sources of static files apart: directories change under us and have links, blobs may be damaged.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  appendFileSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { blobPath } from "../../../../src/core/blob-path.ts";
import { parseSha256, sha256Of } from "../../../../src/core/ids.ts";
import { AbsentPaths } from "../../../../src/agent/accelerator/files/site-files.ts";
import { encodeManifestTable } from "../../../../src/core/serving/manifest-table.ts";
import type { Views } from "../../../../src/core/serving/serving-state.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import { ask, raw, stateOf } from "../edge.ts";
import { layDirectory, layManifest, openSite } from "../site-layout.ts";

describe("a directory's files", () => {
  it("are served as they are now, never as they were", async () => {
    using dir = tempDir();
    const lay = layDirectory(dir.path);
    await using edge = await openSite(lay);
    const path = join(lay.root, "style.css");
    for (let n = 0; n < 50; n++) {
      if (n % 2 === 0) writeFileSync(path, `v${n}`);
      else {
        writeFileSync(`${path}.new`, `v${n}`);
        renameSync(`${path}.new`, path);
      }
      const { text, headers } = await ask(edge, "/style.css");
      expect(text).toBe(`v${n}`);
      expect(headers["cache-status"]).toBe("accel-agent; fwd=miss");
    }
  });

  it("are there with the very next request", async () => {
    using dir = tempDir();
    const lay = layDirectory(dir.path);
    await using edge = await openSite(lay);
    for (let n = 0; n < 20; n++) {
      expect((await ask(edge, `/new-${n}.css`)).status).toBe(404);
      writeFileSync(join(lay.root, `new-${n}.css`), `v${n}`);
      expect(await ask(edge, `/new-${n}.css`)).toMatchObject({ status: 200, text: `v${n}` });
    }
  });

  it("break off rather than mix two versions", async () => {
    using dir = tempDir();
    const lay = layDirectory(dir.path);
    writeFileSync(join(lay.root, "huge.bin"), Buffer.alloc(30_000_000));
    await using edge = await openSite(lay);
    let seen = 0;
    const received = await raw(
      edge,
      "GET /huge.bin HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n\r\n",
      (text) => {
        if (seen === 0) truncateSync(join(lay.root, "huge.bin"), 29_000_000);
        seen = text.length;
        return false;
      },
    );
    expect(received).toContain("Content-Length: 30000000");
    expect(seen).toBeLessThan(30_000_000);
    appendFileSync(join(lay.root, "huge.bin"), "x");
    expect((await ask(edge, "/huge.bin")).body.length).toBe(29_000_001);
  });

  it("may be links within the root, never out of it", async () => {
    using dir = tempDir();
    const lay = layDirectory(dir.path);
    symlinkSync("style.css", join(lay.root, "inside.css"));
    symlinkSync("/etc/passwd", join(lay.root, "outside.txt"));
    symlinkSync("/etc", join(lay.root, "etc"));
    symlinkSync("..", join(lay.root, "up"));
    mkdirSync(join(dir.path, "site-2"));
    writeFileSync(join(dir.path, "site-2", "a.txt"), "a neighbour's");
    await using edge = await openSite(lay);
    expect(await ask(edge, "/inside.css")).toMatchObject({ status: 200, text: "body{}" });
    for (const path of ["/outside.txt", "/etc/passwd", "/up/site-2/a.txt"])
      expect((await ask(edge, path)).status).toBe(404);
    expect(await ask(edge, "/up/site/style.css")).toMatchObject({ status: 200 });
  });

  it("are served when the root itself is a link that moves", async () => {
    using dir = tempDir();
    const lay = layDirectory(dir.path);
    symlinkSync(lay.root, join(dir.path, "current"));
    const views: Views = { kind: "directory", root: join(dir.path, "current") };
    await using edge = await openSite({ ...lay, views });
    expect(await ask(edge, "/style.css")).toMatchObject({ status: 200, text: "body{}" });
    mkdirSync(join(dir.path, "next"));
    writeFileSync(join(dir.path, "next", "style.css"), "new");
    symlinkSync("next", join(dir.path, "current.new"));
    renameSync(join(dir.path, "current.new"), join(dir.path, "current"));
    expect(await ask(edge, "/style.css")).toMatchObject({ status: 200, text: "new" });
  });

  it("of a sub-directory have links into the rest of the views, and none out of them", async () => {
    using dir = tempDir();
    const lay = layDirectory(dir.path);
    writeFileSync(join(dir.path, "private.txt"), "not ours");
    symlinkSync("../style.css", join(lay.root, "docs/shared.css"));
    symlinkSync("../../private.txt", join(lay.root, "docs/out.txt"));
    const views: Views = { kind: "directory", root: lay.root, prefix: "docs/" };
    await using edge = await openSite({ ...lay, views });
    expect(await ask(edge, "/")).toMatchObject({ status: 200, text: "docs" });
    expect(await ask(edge, "/shared.css")).toMatchObject({ status: 200, text: "body{}" });
    for (const path of ["/style.css", "/../style.css", "/%2e%2e/style.css", "/out.txt"])
      expect((await ask(edge, path)).status).not.toBe(200);
  });

  it("are not the devlove file, under whatever name and wherever it lies", async () => {
    using dir = tempDir();
    const lay = layDirectory(dir.path);
    const except = join(lay.root, "docs/devlove.json");
    writeFileSync(except, "{}");
    symlinkSync("docs/devlove.json", join(lay.root, "link.json"));
    linkSync(except, join(lay.root, "hard.json"));
    writeFileSync(join(lay.root, "devlove.json"), "a view");
    const views: Views = { kind: "directory", root: lay.root, except };
    await using edge = await openSite({ ...lay, views });
    for (const path of ["/docs/devlove.json", "/link.json", "/hard.json"])
      expect((await ask(edge, path)).status).toBe(404);
    expect(await ask(edge, "/devlove.json")).toMatchObject({ status: 200, text: "a view" });
    rmSync(except);
    expect((await ask(edge, "/devlove.json")).status).toBe(200);
  });

  it("that are no files for visitors are not there: pipes, sockets' names, too long ones", async () => {
    using dir = tempDir();
    const lay = layDirectory(dir.path);
    execFileSync("mkfifo", [join(lay.root, "pipe.txt")]);
    symlinkSync("loop.txt", join(lay.root, "loop.txt"));
    await using edge = await openSite(lay);
    const long = "x".repeat(300);
    const deep = "d/".repeat(2_500);
    for (const path of ["/pipe.txt", "/loop.txt", `/${long}`, `/${deep}x`, "/STYLE.CSS"])
      expect((await ask(edge, path)).status).toBe(404);
  });

  it("are 304 by date too", async () => {
    using dir = tempDir();
    const lay = layDirectory(dir.path);
    await using edge = await openSite(lay);
    const modified = await until(
      "a validator",
      async () => (await ask(edge, "/style.css")).headers["last-modified"],
    );
    expect(
      (await ask(edge, "/style.css", { headers: { "if-modified-since": modified } })).status,
    ).toBe(304);
  });
});

describe("a manifest's files", () => {
  it("that are damaged on disk are no answer", async () => {
    using dir = tempDir();
    const lay = layManifest(dir.path, "");
    await using edge = await openSite(lay);
    const digest = parseSha256(createHash("sha256").update("body{}").digest("hex"));
    if (digest === undefined) throw new Error("no digest");
    const blob = blobPath(lay.blobsDir, digest);
    truncateSync(blob, 3);
    const answer = await ask(edge, "/style.css");
    expect(answer.status).toBe(500);
    expect(answer.text).not.toContain(dir.path);
    expect(readFileSync(blob).length).toBe(3);
  });

  it("with other bytes of the same length are no answer either", async () => {
    using dir = tempDir();
    const lay = layManifest(dir.path, "");
    await using edge = await openSite(lay);
    writeFileSync(blobPath(lay.blobsDir, sha256Of("body{}")), "BODY{}");
    expect((await ask(edge, "/style.css")).status).toBe(500);
  });

  it("that are small are served from memory, whole and in part, whatever becomes of the disk", async () => {
    using dir = tempDir();
    const lay = layManifest(dir.path, "");
    await using edge = await openSite(lay);
    expect(await ask(edge, "/style.css")).toMatchObject({ status: 200, text: "body{}" });
    rmSync(blobPath(lay.blobsDir, sha256Of("body{}")));
    expect(await ask(edge, "/style.css")).toMatchObject({ status: 200, text: "body{}" });
    const headers = { range: "bytes=1-3" };
    expect(await ask(edge, "/style.css", { headers })).toMatchObject({ status: 206, text: "ody" });
  });

  it("of middle size are served from memory from the second time on, whatever becomes of the disk", async () => {
    using dir = tempDir();
    const lay = layManifest(dir.path, "");
    const content = "0123456789".repeat(20_000);
    const sha256 = sha256Of(content);
    const blob = blobPath(lay.blobsDir, sha256);
    mkdirSync(dirname(blob), { recursive: true });
    writeFileSync(blob, content);
    const file = { path: "mid.bin", sha256, size: content.length, mime: "image/png" };
    const views: Views = { kind: "manifest", table: encodeManifestTable([file]), prefix: "" };
    await using edge = await openSite({ ...lay, views });
    for (let n = 0; n < 2; n++) expect((await ask(edge, "/mid.bin")).text).toBe(content);
    rmSync(blob);
    expect((await ask(edge, "/mid.bin")).text).toBe(content);
    const headers = { range: "bytes=70000-149999" };
    const part = await ask(edge, "/mid.bin", { headers });
    expect(part).toMatchObject({ status: 206, text: content.slice(70_000, 150_000) });
  });

  it("that were not there are there with the version that has them", async () => {
    using dir = tempDir();
    const lay = layManifest(dir.path, "");
    await using edge = await openSite(lay);
    for (let n = 0; n < 3; n++) expect((await ask(edge, "/new.css")).status).toBe(404);
    const content = "new{}";
    const sha256 = sha256Of(content);
    const blob = blobPath(lay.blobsDir, sha256);
    mkdirSync(dirname(blob), { recursive: true });
    writeFileSync(blob, content);
    const file = { path: "new.css", sha256, size: content.length, mime: "text/css" };
    const views: Views = { kind: "manifest", table: encodeManifestTable([file]), prefix: "" };
    edge.publish(stateOf(2, {}, views));
    expect(await ask(edge, "/new.css")).toMatchObject({ status: 200, text: content });
    expect((await ask(edge, "/style.css")).status).toBe(404);
  });

  it("that are not there are remembered, within bounds", () => {
    const absent = new AbsentPaths();
    for (let n = 0; n < 4_096; n++) absent.add(`/${n}`);
    expect([absent.has("/0"), absent.has("/4095"), absent.has("/4096")]).toEqual([
      true,
      true,
      false,
    ]);
    absent.add("/4096");
    expect([absent.has("/0"), absent.has("/4096")]).toEqual([false, true]);
    absent.add(`/${"x".repeat(1_000)}`);
    expect(absent.has(`/${"x".repeat(1_000)}`)).toBe(false);
  });
});
