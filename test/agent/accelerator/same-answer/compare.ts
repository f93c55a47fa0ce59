// The same answer: random scenes, each before two workers. One answers in the lane what it can, the other knows no lane; whatever is asked of both, both give
// the same status, fields in order, body, record, metrics, decisions, and notes of use.

import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";
import {
  effectiveDevlove,
  type SiteInput,
} from "../../../../src/core/serving/effective-devlove.ts";
import type { HostBots, ServingState, Views } from "../../../../src/core/serving/serving-state.ts";
import type { EdgeParts } from "../edge.ts";
import { host, openOrigin, type Origin } from "../edge.ts";
import { installed, tableOf } from "../secure-clients.ts";
import { layDirectory, layManifest, type Lay } from "../site-layout.ts";
import { answerAsOrigin } from "./origin.ts";
import { storedOf } from "./entries.ts";
import { addresses, paths, requestOf, visitorOf, type AskedOf, type Paths } from "./requests.ts";
import { botsOf, Dice, sceneOf, siteOf, type Scene, type ViewsKind } from "./scenes.ts";
import { openSides, type Side } from "./side.ts";

/** What the two say otherwise. */
export class Difference extends Error {}

export type SceneTotals = { cases: number; quick: number; byStatus: Map<number, number> };

const slots = 3;
const stepsUsual = 40;
const asksMax = 8;
/** A request that found no room is held so long at most. */
const heldMs = 3_001;
/** Beyond the time of the scenes. */
const to = new Date(Date.UTC(2040, 0));
const certificates = tableOf(installed({ names: [host, "shop.example.com"], to }));

/** What all scenes stand on. */
export class Ground implements AsyncDisposable {
  readonly origin: Origin;
  readonly manifest: Lay;
  readonly #dir: string;
  #directories = 0;

  private constructor(origin: Origin, dir: string) {
    this.origin = origin;
    this.#dir = dir;
    this.manifest = layManifest(dir, "");
    layDirectory(join(dir, "pattern"));
  }

  static async open(): Promise<Ground> {
    const dir = mkdtempSync(join(tmpdir(), "same-answer-"));
    return new Ground(await openOrigin(answerAsOrigin), dir);
  }

  viewsOf(kind: ViewsKind): Views {
    if (kind === "none") return { kind };
    if (kind === "manifest") return this.manifest.views;
    const root = join(this.#dir, `site-${this.#directories++}`);
    cpSync(join(this.#dir, "pattern", "site"), root, { recursive: true, preserveTimestamps: true });
    return { kind, root };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.origin[Symbol.asyncDispose]();
    rmSync(this.#dir, { recursive: true, force: true });
  }
}

/** Plays one scene. Throws a Difference where the two answer otherwise. */
export async function playScene(
  ground: Ground,
  seed: number,
  totals: SceneTotals,
  parts: Partial<EdgeParts> = {},
  steps = stepsUsual,
): Promise<void> {
  const scene = sceneOf(seed, ground.origin.url, steps);
  const sides = await openSides({ scene, blobsDir: ground.manifest.blobsDir }, parts);
  await using lane = sides.lane;
  await using pipeline = sides.pipeline;
  const play = new Play(ground, scene, lane, pipeline, totals);
  try {
    await play.run();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const said = `seed ${seed}, step ${play.step}, ${scene.carrier}: ${error.message}`;
    throw new Difference(`${said}\n${play.asked}`, { cause: error });
  } finally {
    totals.quick += lane.edge.quick.answer;
  }
}

class Play {
  readonly #scene: Scene;
  readonly #dice: Dice;
  readonly #ground: Ground;
  readonly #lane: Side;
  readonly #pipeline: Side;
  readonly #totals: SceneTotals;
  readonly #visitors: readonly ReturnType<typeof visitorOf>[];
  readonly #views: Views;
  /** The paths of most that is stored and asked. */
  readonly #hot: Paths;
  #site: SiteInput;
  #bots: HostBots;
  #version = 0;
  /** Connections that node's parser has for good. */
  readonly #handed = new Set<number>();
  step = 0;
  /** The requests under way, for whoever reads of a difference. */
  asked = "";

  constructor(ground: Ground, scene: Scene, lane: Side, pipeline: Side, totals: SceneTotals) {
    this.#ground = ground;
    this.#scene = scene;
    this.#lane = lane;
    this.#pipeline = pipeline;
    this.#totals = totals;
    this.#dice = new Dice(scene.seed ^ 0x5a5a5a);
    this.#visitors = Array.from({ length: 4 }, () => visitorOf(this.#dice));
    const picture = this.#dice.happens(0.5) ? "/img/x.png" : this.#dice.one(paths);
    this.#hot = [this.#dice.one(paths), this.#dice.one(paths), picture];
    this.#views = ground.viewsOf(scene.views);
    this.#site = scene.site;
    this.#bots = botsOf(this.#dice);
  }

  get #sides(): readonly [Side, Side] {
    return [this.#lane, this.#pipeline];
  }

  async run(): Promise<void> {
    const dice = this.#dice;
    // A worker that is starting has no certificates.
    if (this.#lane.securePort !== 0 || dice.happens(0.97)) this.#publish();
    for (let entries = 8 + dice.below(24); entries > 0; entries--) this.#store();
    for (; this.step < this.#scene.steps; this.step++) {
      if (dice.happens(0.45)) this.#change();
      await this.#ask(this.#requests());
    }
    if (this.#scene.drains) await this.#drain();
    await this.#compareMetrics();
  }

  #publish(): void {
    const version = ++this.#version;
    const configOf = (name: string, site: SiteInput) => {
      const config = effectiveDevlove({ domains: { [host]: site } }, host, null);
      return { ...config, host: name };
    };
    const [views, bots] = [this.#views, this.#bots];
    const none: Views = { kind: "none" };
    const hosts = [
      { name: host, site: configOf(host, this.#site), views, bots },
      { name: "shop.example.com", site: configOf("shop.example.com", this.#scene.shop), views: none, bots }, // prettier-ignore
      { name: "bare.example.com", site: null, views: none, bots },
    ];
    const isSecure = this.#lane.securePort !== 0;
    const state: ServingState = {
      version,
      domains: [{ name: host, hosts, manifest: null }],
      ...(isSecure && { certificates }),
    };
    for (const side of this.#sides) side.publish(state);
  }

  #store(): void {
    const { carrier } = this.#scene;
    const scheme = carrier === "plain" || carrier === "proxy" ? "http" : "https";
    const stored = storedOf(this.#dice, this.#lane.nowMs, scheme, this.#hot);
    const { port } = this.#lane;
    const vary =
      stored.meta.vary &&
      Object.fromEntries(
        Object.entries(stored.meta.vary).map(([name, value]) => [
          name,
          value.replace("{port}", `${port}`),
        ]),
      );
    for (const { cache } of this.#sides)
      cache.put({ ...stored, meta: { ...stored.meta, vary } }, host);
  }

  /** Something happens between two reads. */
  #change(): void {
    const dice = this.#dice;
    const what = dice.below(20);
    if (what < 7) {
      const ms = dice.one([1, 1, 499, 500, 999, 1_000, 1_001, 2_000, 5_000, 59_999, 0.5]);
      for (const { passed } of this.#sides) passed.ageMs += ms;
    } else if (what < 11) for (let entries = 3; entries > 0; entries--) this.#store();
    else if (what < 13) {
      const path = dice.one(paths);
      for (const { cache } of this.#sides) cache.clear((key) => key.path === path);
    } else if (what < 14)
      for (const { cache } of this.#sides) cache.isConfirmed = !cache.isConfirmed;
    else if (what < 15) for (const { cache } of this.#sides) cache.holds = !cache.holds;
    else if (what < 16) {
      const share = 1 + dice.below(4);
      for (const { cache } of this.#sides)
        for (const id of cache.rows.keys())
          if (id % share === 1) cache.cold.add(id);
          else cache.cold.delete(id);
    } else if (what < 18) {
      this.#bots = botsOf(dice); // Addresses are marked, or a policy changes.
      this.#publish();
    } else if (what < 19) {
      this.#site = siteOf(dice, this.#ground.origin.url);
      this.#publish();
    } else this.#edit();
  }

  /** Somebody edits the folder that the site is served from. */
  #edit(): void {
    if (this.#views.kind !== "directory") return;
    const path = this.#dice.one(["a", "fresh.txt", "style.css"]);
    const file = join(this.#views.root, path);
    if (this.#dice.happens(0.3)) rmSync(file, { force: true });
    else writeFileSync(file, `edited in step ${this.step}`);
  }

  #requests(): readonly AskedOf[] {
    const dice = this.#dice;
    const visitor = this.#visitors[dice.below(this.#visitors.length)] ?? [];
    const count = this.#scene.waitsForRoom ? 1 : 1 + dice.below(asksMax);
    const requests = Array.from({ length: count }, () => requestOf(dice, visitor, this.#hot));
    // Behind what is not plain nothing is asked at once: node's pipelining has an order of its own.
    const odd = requests.findIndex(({ isOdd }) => isOdd);
    return odd < 0 ? requests : requests.slice(odd, odd + 1);
  }

  async #ask(requests: readonly AskedOf[]): Promise<void> {
    const dice = this.#dice;
    const slot = dice.below(slots);
    const isOpen = this.#sides.every((side) => side.isOpen(slot));
    if (!isOpen || dice.happens(0.03)) {
      const source = dice.one(addresses);
      for (const side of this.#sides) await side.openSlot(slot, source);
      this.#handed.delete(slot);
    }
    if (requests.some(({ isOdd }) => isOdd)) this.#handed.add(slot);
    const cut = dice.below(100) / 100;
    const cuts = dice.happens(0.2) ? [cut, (cut + 1) / 2] : [];
    const isAtOnce = !this.#handed.has(slot);
    this.asked = JSON.stringify(requests, null, 1);
    if (this.#scene.waitsForRoom) this.#giveRoom();
    const [inLane, inPipeline] = await this.#answers(slot, requests, isAtOnce ? cuts : undefined);
    this.#same("answers", inLane, inPipeline);
    for (const answer of inPipeline) this.#count(answer);
    await this.#compareSaid();
  }

  async #answers(
    slot: number,
    requests: readonly AskedOf[],
    cuts: readonly number[] | undefined,
  ): Promise<readonly [readonly string[], readonly string[]]> {
    const both = Promise.all([
      cuts === undefined
        ? this.#lane.askInTurn(slot, requests)
        : this.#lane.askAtOnce(slot, requests, cuts),
      this.#pipeline.askInTurn(slot, requests),
    ]);
    if (!this.#scene.waitsForRoom) return both;
    const answered = { isOver: false };
    void both.finally(() => (answered.isOver = true)).catch(() => {});
    const areHeld = (): boolean => this.#sides.every(({ room }) => room.refusals > 0);
    while (!answered.isOver && !areHeld()) await turn();
    if (answered.isOver) return both;
    // Both hold the request: room comes, or the time is over.
    const comes = this.#dice.happens(0.5);
    for (const { room, passed } of this.#sides)
      if (comes) room.left = 1;
      else passed.steadyMs += heldMs;
    return both;
  }

  #giveRoom(): void {
    const left = this.#dice.happens(0.4) ? 0 : 1;
    for (const { room } of this.#sides) {
      room.left = left;
      room.refusals = 0;
    }
  }

  #count(answer: string): void {
    const { byStatus } = this.#totals;
    const status = Number(/\d\d\d/.exec(answer)?.[0]);
    byStatus.set(status, (byStatus.get(status) ?? 0) + 1);
    this.#totals.cases++;
  }

  async #compareSaid(): Promise<void> {
    await Promise.all(this.#sides.map(async (side) => side.recorded()));
    const [lane, pipeline] = [this.#lane.takeSaid(), this.#pipeline.takeSaid()];
    for (const [what, said] of Object.entries(lane)) this.#same(what, said, pipeline[what] ?? []);
    const [answered] = pipeline["answered"] ?? [];
    this.#same("records of answers", [pipeline["records"]?.length], [answered]);
  }

  #same(what: string, lane: readonly unknown[], pipeline: readonly unknown[]): void {
    if (isDeepStrictEqual(lane, pipeline)) return;
    const at = lane.findIndex((one, no) => !isDeepStrictEqual(one, pipeline[no]));
    const no = at < 0 ? lane.length : at;
    const text = (one: unknown): string => JSON.stringify(one)?.slice(0, 2_000) ?? "nothing";
    throw new Difference(
      `${what}, ${no + 1} of ${lane.length} and ${pipeline.length}:\nlane     ${text(lane[no])}\npipeline ${text(pipeline[no])}`,
    );
  }

  /** The workers are told to stop; what is asked then is answered, and nothing more. */
  async #drain(): Promise<void> {
    const dice = this.#dice;
    const requests = [requestOf(dice, this.#visitors[0] ?? [], this.#hot)].filter(
      ({ isOdd }) => !isOdd,
    );
    const slot = slots;
    const source = dice.one(addresses);
    for (const side of this.#sides) {
      side.room.left = Infinity;
      await side.openSlot(slot, source);
    }
    await this.#askFirst(slot);
    const drained = this.#sides.map(async ({ edge }) => edge.drain(5_000));
    this.asked = JSON.stringify(requests, null, 1);
    const answers = await Promise.all(this.#sides.map(async (side) => side.askInTurn(slot, requests))); // prettier-ignore
    const [lane = [], pipeline = []] = answers;
    // A busy host may have let the grace of an idle connection pass before it looked at what was asked.
    if (lane.length === pipeline.length) {
      this.#same("answers while draining", lane, pipeline);
      await this.#compareSaid();
    }
    for (const side of this.#sides) for (let no = 0; no <= slots; no++) side.leave(no);
    await Promise.all(drained);
  }

  /** A connection that has asked already is answered on. */
  async #askFirst(slot: number): Promise<void> {
    const plain = requestOf(new Dice(1), [], this.#hot);
    for (const side of this.#sides) await side.askInTurn(slot, [plain]);
    await this.#compareSaid();
  }

  async #compareMetrics(): Promise<void> {
    let [lane, pipeline] = ["", ""];
    // A count of a connection that was left comes with its close.
    for (let tries = 0; tries < 40; tries++) {
      [lane, pipeline] = [await this.#lane.metrics(), await this.#pipeline.metrics()];
      if (lane === pipeline) return;
      await sleep(5);
    }
    this.#same("metrics", lane.split("\n"), pipeline.split("\n"));
  }
}
