// `viewset.disk_max` over a real directory: imports and what transfers have left count as versions do.

import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { HeldReleases } from "../../../src/agent/viewset/room.ts";
import { openViewsets } from "../../../src/agent/viewset/viewsets.ts";
import { Health } from "../../../src/base/health.ts";
import { silentLog } from "../../../src/base/log.ts";
import { Registry } from "../../../src/base/metrics.ts";
import { isShortage } from "../../../src/core/faults.ts";
import { blobPath } from "../../../src/core/blob-path.ts";
import { canMountDisks, SmallDisk } from "../../support/small-disk.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { digest, FakeCentral } from "./fake-central.ts";
import { devlove, names, never } from "./fixture.ts";

const mega = 2 ** 20;
const file = (): Buffer => randomBytes(3 * mega);

async function setUp(path: string, diskMax = 8 * mega, spareBytes = 0) {
  const central = new FakeCentral();
  const views = join(path, "views");
  mkdirSync(views, { recursive: true });
  writeFileSync(join(path, "devlove.json"), devlove);
  let held: ReturnType<HeldReleases["held"]> = [];
  const state = join(path, "state");
  const viewsets = await openViewsets({
    stateDir: state,
    central,
    sites: [{ domain: names.name, views_dir: views, devlove_file: join(path, "devlove.json") }],
    backendRules: {},
    diskMax,
    spareBytes: async () => spareBytes,
    releases: {
      held: () => held,
      giveUp: (given) => {
        held = held.filter(({ manifest }) => !given.some((one) => one.manifest === manifest));
      },
    },
    onProgress: () => undefined,
    registry: new Registry(),
    health: new Health(() => new Date(0)),
    log: silentLog(),
    stop: never,
  });
  const isHere = (content: Buffer): boolean =>
    existsSync(blobPath(viewsets.blobsDir, digest(content)));
  const incoming = join(viewsets.blobsDir, "incoming");
  return {
    central,
    viewsets,
    isHere,
    held: () => held,
    hold: (...releases: typeof held) => void (held = releases),
    put: (name: string, content: Buffer): void => writeFileSync(join(views, name), content),
    importSite: async () => viewsets.importSite("i1", names, never),
    /** Of partial files. */
    parts: (): readonly number[] =>
      readdirSync(incoming).map((name) => statSync(join(incoming, name)).size),
  };
}

type Rig = Awaited<ReturnType<typeof setUp>>;

/** Ended by another activation when all but the last chunk has come. */
async function breakOff({ central, viewsets }: Rig, content: Buffer): Promise<void> {
  central.cuts.set(central.add(content), content.length - 1);
  const broken = viewsets.prepare(
    central.addViewset(devlove, { "video.mp4": content }),
    names,
    never,
  );
  await expect(broken).rejects.toMatchObject({ code: "CENTRAL_UNREACHABLE" });
}

test("a site that has no room is refused with the figures, and nothing of it is copied", async () => {
  using dir = tempDir();
  const rig = await setUp(dir.path);
  await using _ = rig.viewsets;
  const contents = [file(), file(), file()];
  for (const [i, content] of contents.entries()) rig.put(`${i}.bin`, content);
  await expect(rig.importSite()).rejects.toMatchObject({
    code: "IMPORT_IMPOSSIBLE",
    message: expect.stringMatching(
      /views has 9437184 bytes in 3 files to import, and there is no room for them: .* need 9437184 bytes, more than viewset\.disk_max allows \(8388608\)$/,
    ),
  });
  expect(contents.some(rig.isHere)).toBe(false);
  expect(rig.central.uploaded).toEqual([]);
});

test("what the version in force has already takes no more room in an import", async () => {
  using dir = tempDir();
  const rig = await setUp(dir.path);
  await using _ = rig.viewsets;
  const [one, two, three] = [file(), file(), randomBytes(mega)];
  rig.put("1.bin", one);
  rig.put("2.bin", two);
  const { manifest } = await rig.importSite();
  const prepared = await rig.viewsets.prepare(manifest, names, never);
  rig.hold({ domain: names.name, manifest, standing: "needed", activatedAt: "" });
  prepared[Symbol.dispose]();
  rig.put("3.bin", three);
  expect(await rig.importSite()).toMatchObject({ files: 3, bytes: 7 * mega });
  expect([one, two, three].every(rig.isHere)).toBe(true);
  rig.put("4.bin", file());
  await expect(rig.importSite()).rejects.toMatchObject({ code: "IMPORT_IMPOSSIBLE" });
});

test("kept versions are given up for an import", async () => {
  using dir = tempDir();
  const rig = await setUp(dir.path);
  await using _ = rig.viewsets;
  const manifest = rig.central.addViewset(devlove, { "old.bin": file(), "older.bin": file() });
  const prepared = await rig.viewsets.prepare(manifest, names, never);
  rig.hold({ domain: names.name, manifest, standing: "kept", activatedAt: "" });
  prepared[Symbol.dispose]();
  rig.put("1.bin", file());
  await rig.importSite();
  expect(rig.held()).toEqual([]);
});

test("what broken transfers have left is never more than there is room for", async () => {
  using dir = tempDir();
  const rig = await setUp(dir.path);
  await using _ = rig.viewsets;
  const last = file();
  for (const content of [file(), file(), file(), last]) {
    await breakOff(rig, content);
    expect(rig.parts().reduce((sum, bytes) => sum + bytes, 0)).toBeLessThan(8 * mega);
  }
  // What is still wanted goes on where it was.
  const again = await setUp(dir.path);
  await using _again = again.viewsets;
  const manifest = again.central.addViewset(devlove, { "video.mp4": last });
  await again.viewsets.prepare(manifest, names, never);
  const asked = again.central.asked.filter(({ sha256 }) => sha256 === digest(last));
  expect(asked).toEqual([{ sha256: digest(last), from: last.length - 1, isText: false }]);
  expect(again.parts()).toEqual([]);
});

test("what is prepared and not yet in force has its room: two large versions at once are never more than there is room for", async () => {
  using dir = tempDir();
  const rig = await setUp(dir.path);
  await using _ = rig.viewsets;
  const [one, other] = [file(), file()].map((content) =>
    rig.central.addViewset(devlove, { "1.bin": content, "2.bin": randomBytes(2 * mega) }),
  );
  if (one === undefined || other === undefined) throw new Error("no versions");
  const first = await rig.viewsets.prepare(one, names, never);
  const second = rig.viewsets.prepare(other, names, never);
  const settled = second.then(
    () => "prepared",
    (error: unknown) => String(error),
  );
  expect(await Promise.race([settled, sleep(300, "waits")])).toBe("waits");
  rig.hold({ domain: "first.example.com", manifest: one, standing: "needed", activatedAt: "" });
  first[Symbol.dispose]();
  await expect(second).rejects.toMatchObject({ code: "VIEWSET_TOO_LARGE" });
});

test.skipIf(!canMountDisks)(
  "a version that the disk has no room for is not begun: nothing of it would be of use; where the cache gives way, it is",
  async () => {
    using dir = tempDir();
    using disk = new SmallDisk("64M");
    disk.mount(join(dir.path, "state"));
    disk.fill(4 * mega);
    const video = randomBytes(6 * mega);
    for (const spare of [0, 8 * mega]) {
      const rig = await setUp(dir.path, 1_000 * mega, spare);
      const manifest = rig.central.addViewset(devlove, { "video.mp4": video });
      if (spare > 0) disk.clean(); // As the cache does.
      const prepared = rig.viewsets.prepare(manifest, names, never);
      if (spare > 0) (await prepared)[Symbol.dispose]();
      else {
        const error = await prepared.catch((thrown: unknown) => thrown);
        expect(error).toMatchObject({
          code: "DISK_FAILED",
          message: expect.stringMatching(
            /^6 MiB of it are not here, and the disk has [34] MiB free/,
          ),
        });
        expect(isShortage(error)).toBe(true);
      }
      expect([rig.isHere(video), rig.parts()]).toEqual([spare > 0, []]);
      await rig.viewsets[Symbol.asyncDispose]();
    }
  },
);
