// A site is taken as it was at one moment: while it is written to, what is taken is one of the states that it went through.

import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { BlobStore, openBlobStore } from "../../../src/agent/viewset/blob-store.ts";
import { ProgressMeter } from "../../../src/agent/viewset/import-progress.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { digest } from "./fake-central.ts";
import {
  SiteTaking,
  type SiteRoom,
  type TakenSite,
} from "../../../src/agent/viewset/site-import.ts";

type State = Readonly<Record<string, string>>;

/** Tells before each file that is taken, which is when a deployment goes on. */
class WatchedStore extends BlobStore {
  onIngest: () => void = () => {};
  #taking = 0;
  takingMost = 0;

  override async ingest(...asked: Parameters<BlobStore["ingest"]>) {
    this.onIngest();
    this.takingMost = Math.max(this.takingMost, ++this.#taking);
    try {
      return await super.ingest(...asked);
    } finally {
      this.#taking--;
    }
  }
}

async function setUp(path: string) {
  const { dir } = await openBlobStore(join(path, "blobs"));
  const store = new WatchedStore(dir, [], () => performance.now());
  const views = join(path, "views");
  mkdirSync(views);
  const location = { domain: "www.example.com", views_dir: views, devlove_file: `${path}/none` };
  const progress = new ProgressMeter(
    "i1",
    () => {},
    () => 0,
  );
  const rig = { isTight: false };
  const room: SiteRoom = async (_, read) => {
    if (rig.isTight) await read();
    return { tell: () => {} };
  };
  return {
    rig,
    store,
    views,
    put: (name: string, content: string): void => {
      mkdirSync(dirname(join(views, name)), { recursive: true });
      writeFileSync(join(views, name), content);
    },
    take: async (): Promise<TakenSite> =>
      SiteTaking.run({ store, room, location, progress }, new AbortController().signal),
  };
}

const asTaken = (state: State): readonly unknown[] =>
  Object.keys(state)
    .sort()
    .map((path) => ({ path, sha256: digest(state[path] ?? "") }));

const taken = ({ files }: TakenSite): readonly unknown[] =>
  files.map(({ path, sha256 }) => ({ path, sha256 }));

const names = ["a.html", "b.html", "d/c.html", "d/e.html"];
const step = fc.record({
  path: fc.constantFrom(...names),
  content: fc.option(fc.constantFrom("one", "two", "other"), { nil: undefined }),
  isReplaced: fc.boolean(),
});

test("what is taken is a state that the site went through, however it is changed meanwhile", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 8 }),
      fc.nat(2),
      fc.boolean(),
      async (steps, skip, isTight) => {
        using dir = tempDir();
        const { rig, store, views, put, take } = await setUp(dir.path);
        rig.isTight = isTight;
        if (isTight) await store.putBytes(Buffer.from("first"));
        let state: State = Object.fromEntries(names.map((name) => [name, "first"]));
        for (const name of names) put(name, "first");
        const states = [asTaken(state)];
        const left = [...steps];
        let asked = 0;
        store.onIngest = () => {
          if (asked++ < skip) return;
          const next = left.shift();
          if (next === undefined) return;
          const { path, content, isReplaced } = next;
          const { [path]: _, ...others } = state;
          if (content === undefined) rmSync(join(views, path), { force: true });
          else if (isReplaced) {
            put(".new", content);
            renameSync(join(views, ".new"), join(views, path));
          } else put(path, content);
          state = content === undefined ? others : { ...others, [path]: content };
          states.push(asTaken(state));
        };
        expect(states).toContainEqual(taken(await take()));
      },
    ),
    { numRuns: 15 },
  );
});

test("a whole release behind a link that moves is taken from one of the two", async () => {
  using dir = tempDir();
  const { store, views, put, take } = await setUp(dir.path);
  for (const release of ["r1", "r2"])
    for (const name of ["a", "b", "c"]) put(`.releases/${release}/${name}`, `${release} ${name}`);
  symlinkSync(".releases/r1", join(views, "current"));
  store.onIngest = () => {
    store.onIngest = () => {};
    unlinkSync(join(views, "current"));
    symlinkSync(".releases/r2", join(views, "current"));
  };
  const second = { "current/a": "r2 a", "current/b": "r2 b", "current/c": "r2 c" };
  expect(taken(await take())).toEqual(asTaken(second));
});

test("files that come and go all the while are named", async () => {
  using dir = tempDir();
  const { store, views, put, take } = await setUp(dir.path);
  put("steady.html", "steady");
  put("t0.tmp", "x");
  let made = 0;
  store.onIngest = () => {
    rmSync(join(views, `t${made}.tmp`), { force: true });
    put(`t${++made}.tmp`, "x");
  };
  const refused = take();
  await expect(refused).rejects.toMatchObject({ code: "IMPORT_IMPOSSIBLE" });
  await expect(refused).rejects.toThrow(/keeps changing while it is read: .*"t\d+\.tmp"/);
  await expect(refused).rejects.not.toThrow(/steady/);
}, 20_000);

test("a directory that is swapped for a link out of the views leaves nothing of the outside", async () => {
  using dir = tempDir();
  const { store, views, put, take } = await setUp(dir.path);
  mkdirSync(join(dir.path, "private"));
  writeFileSync(join(dir.path, "private/page"), "not ours");
  put("docs/page", "ours");
  put("index.html", "home");
  store.onIngest = () => {
    store.onIngest = () => {};
    renameSync(join(views, "docs"), join(views, ".docs"));
    symlinkSync("../private", join(views, "docs"));
  };
  const site = await take();
  expect(taken(site)).toEqual(asTaken({ "index.html": "home" }));
  expect(site.leftOut).toEqual(["docs (a link out of views_dir)"]);
});

test("of a site with many files eight are taken at a time", async () => {
  using dir = tempDir();
  const { store, put, take } = await setUp(dir.path);
  const state = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`f${i}`, `content ${i}`]));
  for (const [name, content] of Object.entries(state)) put(name, content);
  expect(taken(await take())).toEqual(asTaken(state));
  expect(store.takingMost).toBe(8);
});
