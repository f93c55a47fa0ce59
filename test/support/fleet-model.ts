// Walks of the model: what customers, hosts and the network do in a random order, with the rules checked on the way and at the end.
//
// A version that a fleet decides on is held by every instance that was asked, at that moment. A version comes into force nowhere unless the journal says so. In
// the end every instance serves the active version, or central says that it does not: `failed` for one, `split` for the fleet. Nothing stays held.

import { createRandom } from "./outside-random.ts";
import { MemoryCentral } from "./fleet-model-central.ts";
import { ModelAgent, type Weakness } from "./fleet-model-agent.ts";
import type { ModelCentral, ModelWorld, PlantedFault } from "./fleet-model-words.ts";

export type WalkCounts = {
  walks: number;
  steps: number;
  activated: number;
  aborted: number;
  returned: number;
  split: number;
};

export type WalkOptions = {
  readonly seed: number;
  readonly steps: number;
  readonly fault?: PlantedFault;
  /** Another central than the one in memory. */
  readonly open?: (world: ModelWorld) => Promise<ModelCentral>;
};

export const noCounts = (): WalkCounts => ({
  walks: 0,
  steps: 0,
  activated: 0,
  aborted: 0,
  returned: 0,
  split: 0,
});

/** Returns what was broken, or undefined. */
export async function walk(options: WalkOptions, counts: WalkCounts): Promise<string | undefined> {
  const scene = await Scene.open(options);
  try {
    for (let no = 0; no < options.steps; no++) await scene.act();
    await scene.settle();
    await scene.judge(counts);
  } catch (error) {
    if (!(error instanceof Broken)) throw error;
    return `seed ${options.seed}: ${error.message}\n${scene.said.join("\n")}`;
  } finally {
    counts.walks++;
    counts.steps += options.steps;
  }
  return undefined;
}

class Broken extends Error {}

const sitesMax = 3;
const instancesMax = 2;
export const versionsMax = 6;

class Scene {
  readonly said: string[] = [];
  readonly #random: () => number;
  readonly #agents: readonly ModelAgent[];
  readonly #central: ModelCentral;
  readonly #time: { nowMs: number; sinceMs: number };
  /** Those who were asked for the activation that is under way. */
  #asked = new Set<ModelAgent>();
  #fleets: readonly { readonly version: number; readonly state: string }[] = [];

  private constructor(
    random: () => number,
    agents: readonly ModelAgent[],
    central: ModelCentral,
    time: { nowMs: number; sinceMs: number },
  ) {
    this.#random = random;
    this.#agents = agents;
    this.#central = central;
    this.#time = time;
  }

  static async open({ seed, fault, open }: WalkOptions): Promise<Scene> {
    const { next: random } = createRandom(seed);
    const below = (count: number): number => Math.floor(random() * count);
    const time = { nowMs: Date.parse("2031-01-01T00:00:00.000Z"), sinceMs: 0 };
    const sites = Array.from({ length: 1 + below(sitesMax) }, (_, no) => no + 1);
    const agents: ModelAgent[] = [];
    const world: ModelWorld = {
      sites,
      nowMs: () => time.nowMs,
      sinceMs: () => time.sinceMs,
      isLive: (site, instance) =>
        agents.some(
          ({ place, isConnected }) =>
            isConnected && place.site === site && place.instance === instance,
        ),
    };
    const central = (await open?.(world)) ?? new MemoryCentral(world, fault);
    const some = (share: number): ReadonlySet<number> =>
      new Set(
        Array.from({ length: versionsMax }, (_, no) => no + 1).filter(() => random() < share),
      );
    for (const site of sites)
      for (let no = below(instancesMax) + 1; no > 0; no--) {
        const weakness: Weakness = {
          isOld: random() < 0.05,
          refuses: some(0.08),
          cannotFollow: some(0.05),
          failsTrial: some(0.08),
        };
        const place = { site, instance: `i${no}` };
        agents.push(new ModelAgent(place, weakness, central, world.nowMs, fault));
      }
    return new Scene(random, agents, central, time);
  }

  async act(): Promise<void> {
    const agent = this.#agents[this.#below(this.#agents.length)];
    if (agent === undefined) return;
    const choices: readonly (readonly [number, string, () => Promise<void> | void])[] = [
      [3, "asks for all", async () => this.#begin("all")],
      [1, "asks for each", async () => this.#begin("each")],
      [12, "central steps", async () => this.#step()],
      [2, "central restarts", () => void (this.#time.sinceMs = this.#time.nowMs)],
      [4, "a while passes", () => void (this.#time.nowMs += this.#below(20_000))],
      [1, "a minute and a half passes", () => void (this.#time.nowMs += 91_000)],
      [10, "connects", async () => this.#connect(agent)],
      [3, "loses central", () => void (agent.isConnected = false)],
      [2, "is killed", () => agent.kill()],
      [1, "loses its state", () => void (agent.needsSnapshot = true)],
      [16, "takes an entry", async () => this.#deliver(agent, false)],
      [2, "takes an entry and is killed", async () => this.#deliver(agent, true)],
      [14, "sends", async () => (agent.isConnected ? agent.send() : undefined)],
      [3, "ends its trial", () => (agent.isUp ? agent.endTrial() : undefined)],
      [2, "looks what is overdue", () => (agent.isUp ? agent.expire() : undefined)],
    ];
    let at = this.#below(choices.reduce((sum, [weight]) => sum + weight, 0));
    const chosen = choices.find(([weight]) => (at -= weight) < 0);
    if (chosen === undefined) return;
    const [, name, run] = chosen;
    this.said.push(`${agent.place.site}/${agent.place.instance} ${name}`);
    await run();
    await this.#check();
  }

  /** Everybody comes back, and everything that is under way ends. */
  async settle(): Promise<void> {
    for (let round = 0; round < 40; round++) {
      this.said.push(`settles ${round}`);
      let isAny = false;
      for (const agent of this.#agents) {
        await this.#connect(agent);
        while (await agent.deliver(false)) isAny = true;
        agent.endTrial();
        await agent.send();
        await this.#check();
      }
      await this.#step();
      await this.#check();
      if (!isAny && round > 3) break;
      if (round === 2) this.#time.nowMs += 61_000;
    }
  }

  async judge(counts: WalkCounts): Promise<void> {
    const { active, activation, states, fleets } = await this.#central.show();
    for (const { state } of fleets)
      if (state === "activated" || state === "aborted" || state === "returned") counts[state]++;
    if (fleets.some(({ state }) => state === "preparing" || state === "failing"))
      throw new Broken("an activation never ended");
    for (const agent of this.#agents) {
      if (agent.book.prepared !== null && !agent.hasSkipped)
        throw new Broken(`${nameOf(agent)} still holds version ${agent.book.prepared.viewset_id}`);
      if (active === null || agent.inForce === active) continue;
      if (states.get(agent.place.site) !== "failed")
        throw new Broken(
          `${nameOf(agent)} serves ${agent.inForce}, not ${active}, and its site is ${states.get(agent.place.site)}`,
        );
    }
    if (active === null || this.#agents.every((agent) => agent.inForce === active)) return;
    // One that fails its trial and has nothing to go back to serves on, and says that it failed.
    const isWithout = ({ inForce, weakness }: ModelAgent): boolean =>
      inForce !== active || weakness.failsTrial.has(active);
    const sitesWithout = new Set(this.#agents.filter(isWithout).map(({ place }) => place.site));
    const isFleet = fleets.some(
      ({ version, state }) => version === active && state === "activated",
    );
    const expected = isFleet && sitesWithout.size < states.size ? "split" : "failed";
    if (expected === "split") counts.split++;
    if (activation !== expected) throw new Broken(`central says ${activation}, it is ${expected}`);
  }

  async #begin(require: "each" | "all"): Promise<void> {
    const version = 1 + this.#below(versionsMax);
    if (!(await this.#central.begin(version, require)) || require === "each") return;
    // Asked once more, an activation that is under way goes on with those it has.
    if ((await this.#central.show()).fleets.length === this.#fleets.length) return;
    this.#asked = new Set(this.#agents.filter(({ isConnected }) => isConnected));
    this.#fleets = (await this.#central.show()).fleets;
  }

  async #step(): Promise<void> {
    for (const agent of this.#agents) if (agent.isConnected) this.#asked.add(agent);
    await this.#central.step();
    const { fleets } = await this.#central.show();
    fleets.forEach(({ state, version }, no) => {
      if (state !== "activated" || this.#fleets[no]?.state !== "preparing") return;
      const without = [...this.#asked].find((agent) => !agent.holds(version));
      if (without !== undefined)
        throw new Broken(`version ${version} was decided, and ${nameOf(without)} does not hold it`);
    });
    this.#fleets = fleets;
  }

  async #connect(agent: ModelAgent): Promise<void> {
    if (!agent.isUp) agent.restart();
    if (!agent.isConnected) await agent.connect();
  }

  async #deliver(agent: ModelAgent, dies: boolean): Promise<void> {
    if (agent.isConnected) await agent.deliver(dies);
  }

  /** No version is in force of which the journal does not say so. */
  async #check(): Promise<void> {
    for (const agent of this.#agents) {
      const version = agent.inForce;
      if (version === null) continue;
      const journal = await this.#central.journal(agent.place.site);
      const isSaid = journal.some(
        (one) => one.kind === "viewset.activated" && one.version === version,
      );
      if (!isSaid) throw new Broken(`${nameOf(agent)} serves ${version}, which nobody decided`);
    }
  }

  #below(count: number): number {
    return Math.floor(this.#random() * count);
  }
}

function nameOf({ place }: ModelAgent): string {
  return `${place.site}/${place.instance}`;
}
