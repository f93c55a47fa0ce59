// The walk of a scrub over real files: what is wrong is told, what is right is not; cut short anywhere, it goes on where it was.

import { createHash } from "node:crypto";
import { mkdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { WalkPosition, WalkMessage } from "../../../src/agent/scrub/messages.ts";
import type { ListedBody } from "../../../src/agent/cache/index/body-list.ts";
import {
  Walk,
  createReadPace,
  type ReadPace,
  type ScrubWalkOptions,
} from "../../../src/agent/scrub/walk.ts";
import { walk } from "../../../src/agent/scrub/walker.ts";
import { blobPath } from "../../../src/core/blob-path.ts";
import { parseSha256, type Sha256 } from "../../../src/core/ids.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";

function digest(content: string | Uint8Array): Sha256 {
  const sha256 = parseSha256(createHash("sha256").update(content).digest("hex"));
  if (sha256 === undefined) throw new TypeError("not a digest");
  return sha256;
}

/** Some larger than what is read in one piece. */
const contents = Array.from({ length: 12 }, (_, no) =>
  `content ${no}`.repeat(no === 7 ? 60_000 : 3),
);
const blobs = contents.map(digest);
const [cut, changed] = [digest(contents[3] ?? ""), digest(contents[7] ?? "")];

class Scene implements Disposable {
  readonly #dir = tempDir();
  readonly blobsDir = join(this.#dir.path, "blobs");
  readonly told: WalkMessage[] = [];
  readonly bodies: ListedBody[] = [];
  readonly gone = new Set<number>();
  pages = 0;

  constructor() {
    mkdirSync(join(this.blobsDir, "incoming"), { recursive: true });
    writeFileSync(join(this.blobsDir, "incoming", "part"), "no blob");
    for (const content of contents) this.#write(blobPath(this.blobsDir, digest(content)), content);
    truncateSync(blobPath(this.blobsDir, cut), 5);
    const text = contents[7] ?? "";
    writeFileSync(blobPath(this.blobsDir, changed), `${text.slice(0, -1)}!`);
    for (let id = 1; id <= 9; id += 2) {
      const path = join(this.#dir.path, `objects/${id}`);
      this.#write(path, `body ${id}`);
      this.bodies.push({ id, path, digest: Buffer.from(digest(`body ${id}`), "hex"), size: 6 });
    }
    writeFileSync(join(this.#dir.path, "objects/3"), "other!");
    rmSync(join(this.#dir.path, "objects/5"));
    writeFileSync(join(this.#dir.path, "objects/7"), "removed meanwhile");
    this.gone.add(7);
  }

  #write(path: string, content: string): void {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
  }

  get list(): ScrubWalkOptions["bodies"] {
    return {
      after: (id) => {
        this.pages++;
        const next = this.bodies.find((body) => body.id > id);
        if (next === undefined) return { bodies: [], through: undefined };
        const through = next.id + 3;
        const found = this.bodies.filter((body) => body.id > id && body.id <= through);
        return { bodies: found, through };
      },
      has: (id) => !this.gone.has(id),
    };
  }

  run(from: WalkPosition, pace: ReadPace, bodies = this.list): void {
    const tell = (message: WalkMessage): void => void this.told.push(message);
    const { blobsDir } = this;
    let clockMs = 0;
    new Walk({ blobsDir, bodies, from, pace, nowMs: () => (clockMs += 400), tell }).run();
  }

  checked(what: "bodies" | "blobs"): number {
    return this.told.reduce(
      (sum, one) => sum + (one.kind === "checked" && one.what === what ? one.count : 0),
      0,
    );
  }

  /** Of what is told of. */
  get damaged(): readonly unknown[] {
    return this.told.flatMap((one) => {
      if (one.kind === "damaged blob") return [[one.sha256, one.reason]];
      return one.kind === "damaged body" ? [[one.id, one.reason]] : [];
    });
  }

  get position(): WalkPosition | undefined {
    return this.told.findLast((one) => one.kind === "checked")?.position;
  }

  get isDone(): boolean {
    return this.told.at(-1)?.kind === "done";
  }

  [Symbol.dispose](): void {
    this.#dir[Symbol.dispose]();
  }
}

const unhurried: ReadPace = { spend: () => true };
const begin = { stage: "bodies", after: "" } as const;
const otherBytes = "its bytes do not match its digest";
const damaged = [
  [3, otherBytes],
  [5, "it is missing"],
  ...[cut, changed].toSorted().map((sha256) => [sha256, otherBytes]),
];

test("what is damaged is told, once; what is right, or gone, is not", () => {
  using scene = new Scene();
  scene.run(begin, unhurried);
  expect(scene.damaged).toEqual(damaged);
  expect([scene.checked("bodies"), scene.checked("blobs")]).toEqual([5, blobs.length]);
  expect(scene.isDone).toBe(true);
});

test("stopped anywhere, it goes on where it was: everything is looked at, nothing is told twice", () => {
  fc.assert(
    fc.property(fc.array(fc.nat({ max: 20 }), { maxLength: 6 }), (stops) => {
      using scene = new Scene();
      let from: WalkPosition = begin;
      for (const stop of [...stops, Infinity]) {
        if (scene.isDone) break;
        let left = stop;
        scene.run(from, { spend: () => left-- > 0 });
        from = scene.position ?? from;
      }
      expect(scene.isDone).toBe(true);
      expect(scene.damaged).toEqual(damaged);
      expect([scene.checked("bodies"), scene.checked("blobs")]).toEqual([5, blobs.length]);
    }),
    { numRuns: 50 },
  );
});

test("an index that cannot be read is skipped with the reason, and the files are looked at all the same", () => {
  using scene = new Scene();
  const after = (): never => {
    throw new Error("database disk image is malformed");
  };
  scene.run(begin, unhurried, { after, has: () => true });
  const reason = "database disk image is malformed";
  expect(scene.told).toContainEqual({ kind: "skipped", what: "bodies", reason });
  expect(scene.checked("blobs")).toBe(blobs.length);
  expect(scene.isDone).toBe(true);
});

test("files are not looked at again where only blobs are left", () => {
  using scene = new Scene();
  scene.run({ stage: "blobs", after: blobs.toSorted()[5] ?? "" }, unhurried);
  expect([scene.pages, scene.checked("blobs")]).toEqual([0, blobs.length - 6]);
});

test("no more is spent than the rate allows, and a stop ends the rest", () => {
  const control = new Int32Array(new SharedArrayBuffer(4));
  const pace = createReadPace(2 ** 40, control);
  expect(pace.spend(1_000)).toBe(true);
  Atomics.store(control, 0, 1);
  // A day's rest, were it not stopped.
  expect(createReadPace(1, control).spend(86_400)).toBe(false);
});

test("a thread that rests for hours ends when it is stopped, and says where it was", async () => {
  using scene = new Scene();
  const stop = new AbortController();
  const options = {
    entry: new URL("../../../src/agent/scrubber.ts", import.meta.url),
    blobsDir: scene.blobsDir,
    cacheDir: join(scene.blobsDir, "no cache"),
    bytesPerS: 1,
  };
  const walking = walk(options, begin, (message) => scene.told.push(message), stop.signal);
  await until("it rests", () => scene.told.some(({ kind }) => kind === "checked"));
  stop.abort();
  await walking;
  expect(scene.isDone).toBe(false);
  expect(scene.position).toEqual({ stage: "blobs", after: "" });
  await walk(
    { ...options, bytesPerS: 2 ** 40 },
    begin,
    (one) => scene.told.push(one),
    AbortSignal.any([]),
  );
  expect(scene.isDone).toBe(true);
});
