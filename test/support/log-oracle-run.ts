// Cycles of the oracle: visitors go on all the time; one hand kills and damages the agent, one kills central, one has the line, clocks and disks.
// Every so many kills all faults end, a fresh record must arrive, everything must drain, and the judge looks.

import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { domain } from "./customer-script.ts";
import { BalanceWatch, isDrained, parseSums, type Sums } from "./log-oracle-balance.ts";
import type { Random } from "./log-oracle-damage.ts";
import * as all from "./log-oracle-faults.ts";
import type { Fault } from "./log-oracle-faults.ts";
import { Judge, type Evidence, type Figures } from "./log-oracle-judge.ts";
import { Producer, type Claim } from "./log-oracle-producer.ts";
import { Scene, type SceneOptions } from "./log-oracle-scene.ts";
import { copyMarks } from "./log-oracle-marks.ts";
import { StoreReader, type StoreNews } from "./log-oracle-store.ts";
import { until } from "./until.ts";

export type OracleOptions = {
  readonly kills: number;
  readonly killsPerChapter: number;
  readonly seed: number;
  readonly scene?: SceneOptions;
  /** Kills and the network only: no disk fails, nothing is damaged. */
  readonly gentle?: boolean;
  /** Told after each chapter, and at each fault with `faults`. */
  readonly say?: (line: string) => void;
  /** The first thing that is not valid ends it. */
  readonly stopAtFirst?: boolean;
};

export type OracleFigures = Figures & {
  readonly kills: number;
  readonly freshMsMax: number;
  readonly balanceSamples: number;
  /** How often the agent's sums were compared with what central has. */
  readonly sumsCompared: number;
  /** How often each fault was. */
  readonly faults: ReadonlyMap<string, number>;
};

/** So often the next start is killed, too. */
const inStartShare = 0.35;
/** Shippers may be in a backoff of up to a minute when all faults end. */
const freshWithinMs = 150_000;
const freshEveryMs = 1_000;
const drainedWithinMs = 150_000;
/** A request's record is made when its last byte is sent, a moment before or after the visitor has it: milliseconds, on a busy machine more. */
const recordedWithinMs = 1_000;

export async function runLogOracle(options: OracleOptions): Promise<OracleFigures> {
  const { seed, kills, killsPerChapter, stopAtFirst = false } = options;
  await using scene = await Scene.open(options.scene);
  await using oracle = new Oracle(scene, randomFrom(seed), options);
  for (let target = 0; oracle.kills < kills;) {
    target = Math.min(kills, target + killsPerChapter);
    await oracle.chapter(target);
    const { figures } = oracle;
    options.say?.(oracle.summary());
    if (stopAtFirst && figures.unexplained.length > 0) break;
  }
  return oracle.figures;
}

export class Oracle implements AsyncDisposable {
  readonly scene: Scene;
  readonly producer: Producer;
  kills = 0;
  readonly #random: Random;
  readonly #judge = new Judge();
  readonly #reader: StoreReader;
  readonly #balance: BalanceWatch;
  readonly #faults = new Map<string, number>();
  readonly #troubles: string[] = [];
  readonly #isGentle: boolean;
  readonly #expected: readonly string[];
  #freshMsMax = 0;

  constructor(
    scene: Scene,
    random: Random,
    { gentle = false, reasons = [] }: { gentle?: boolean; reasons?: readonly string[] } = {},
  ) {
    this.#expected = reasons;
    this.scene = scene;
    this.#isGentle = gentle;
    this.#random = random;
    this.#reader = new StoreReader(scene.storeDir);
    this.producer = new Producer({
      port: scene.edge.ports.visitors,
      domain,
      random,
      run: () => scene.run.no,
    });
    this.#balance = new BalanceWatch(
      () => scene.metrics(),
      () => scene.agent.pid,
    );
  }

  get figures(): OracleFigures {
    const { figures } = this.#judge;
    return {
      ...figures,
      unexplained: [...figures.unexplained, ...this.#balance.violations, ...this.#troubles],
      kills: this.kills,
      freshMsMax: this.#freshMsMax,
      balanceSamples: this.#balance.samples,
      sumsCompared: this.scene.ledger.compared,
      faults: this.#faults,
    };
  }

  /** Why records may be missing after what was done. */
  get #reasons(): ReadonlySet<string> {
    const was = (names: object): boolean =>
      Object.keys(names).some((name) => this.#faults.has(name));
    return new Set([
      "behind",
      ...this.#expected,
      ...(was(all.agentDisk) ? ["io_error", "disk_full", "dropped_oldest", "corrupt"] : []),
      ...(was(all.leftovers) ? ["corrupt"] : []),
      // What was dropped to make room, and only the marks knew of.
      ...(was(all.leftovers) && was(all.agentDisk) ? ["released"] : []),
    ]);
  }

  /** The agent's, as it told them last. */
  get sums(): Sums | undefined {
    return this.#balance.last;
  }

  summary(): string {
    const { kills, claims, records, missing, lost, duplicated, unexplained } = this.figures;
    return `${kills} kills, ${claims} requests, ${records} records, ${missing} told as gaps: lost ${lost}, duplicated ${duplicated}, unexplained ${unexplained.length}`;
  }

  /** Until so many kills happened; then peace, and the judge. */
  async chapter(killsThrough: number): Promise<void> {
    const goesOn = (): boolean => this.kills < killsThrough;
    await Promise.all([
      this.#hurtAgent(goesOn),
      this.#hurtCentral(goesOn),
      this.#hurtOthers(goesOn),
    ]);
    await this.settle();
  }

  /** All faults end, everything arrives, and is judged. */
  async settle(moreClaims: readonly Claim[] = []): Promise<void> {
    const { scene, producer } = this;
    scene.line.state = "open";
    scene.proxy.fault = { kind: "none" };
    for (const name of ["agent", "central"] as const) scene.setClock(name, 0);
    await this.#fresh();
    await producer.pause();
    await sleep(recordedWithinMs);
    const { news, acknowledged } = await this.#drained();
    this.#judge.judge({
      claims: [...producer.takeClaims(), ...moreClaims],
      runs: [...scene.runs, ...scene.clones],
      news,
      acknowledged,
      clockSteps: scene.clockSteps,
      reasons: this.#reasons,
    });
    producer.resume();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#balance[Symbol.asyncDispose]();
    await this.producer[Symbol.asyncDispose]();
  }

  async #hurtAgent(goesOn: () => boolean): Promise<void> {
    const { scene } = this;
    while (goesOn()) {
      await sleep(this.#random() * 700);
      if (!this.#isGentle && this.#random() < 0.12) await this.#suffer(all.agentDisk);
      await this.#suffer(all.agentDeaths);
      this.kills++;
      copyMarks(scene.spoolDir, scene.marksCopy, this.#random);
      if (!this.#isGentle && this.#random() < 0.3) await this.#suffer(all.leftovers);
      if (this.#random() < inStartShare) {
        await this.#suffer(all.agentStarts);
        this.kills++;
      }
      await scene.startAgent();
    }
  }

  async #hurtCentral(goesOn: () => boolean): Promise<void> {
    while (goesOn()) {
      await sleep(this.#random() * 800);
      await this.#suffer(all.centralDeaths);
      this.kills++;
      if (this.#random() < inStartShare) {
        await this.#suffer(all.centralStarts);
        this.kills++;
      }
      await this.scene.restartCentral();
    }
  }

  async #hurtOthers(goesOn: () => boolean): Promise<void> {
    while (goesOn()) {
      await sleep(this.#random() * 800);
      const lot = this.#random();
      const isDisk = lot >= 0.85 && !this.#isGentle;
      const faults = isDisk ? all.centralDisk : lot < 0.7 ? all.network : all.clocks;
      await this.#suffer(faults);
    }
  }

  /** One of them. */
  async #suffer(faults: Readonly<Record<string, Fault>>): Promise<void> {
    const names = Object.keys(faults);
    const name = names[Math.floor(this.#random() * names.length)];
    if (name === undefined) return;
    this.#faults.set(name, (this.#faults.get(name) ?? 0) + 1);
    await faults[name]?.(this.scene, this.#random);
  }

  /** Requests from now on: the record of one must arrive, whatever waits beside it. More than one, as a full spool may leave one out. */
  async #fresh(): Promise<void> {
    const beganMs = performance.now();
    const paths: string[] = [];
    try {
      await until(
        "a fresh record",
        async () => {
          if (performance.now() - beganMs >= paths.length * freshEveryMs) {
            const { expectedUri } = await this.producer.send({ noise: "?fresh" });
            paths.push(expectedUri);
          }
          await sleep(50);
          return paths.some((path) => this.#reader.hasPath(path));
        },
        freshWithinMs,
      );
    } catch (error) {
      this.#troubles.push(String(error));
    }
    this.#freshMsMax = Math.max(this.#freshMsMax, performance.now() - beganMs);
  }

  /**
   * What central has since the last time; taken while nothing was on its way, so that the agent's sums are of the same. Canaries of a clone go on: what is
   * acknowledged while the store is read is judged the next time.
   */
  async #drained(): Promise<Pick<Evidence, "news" | "acknowledged">> {
    const { scene } = this;
    const all: StoreNews[] = [];
    const news = (): StoreNews => ({
      rows: all.flatMap(({ rows }) => rows),
      gaps: all.flatMap(({ gaps }) => gaps),
      marks: all.at(-1)?.marks ?? new Map<string, number>(),
    });
    let before: Sums | undefined;
    let acknowledged: Evidence["acknowledged"] = new Map();
    try {
      const sums = await until(
        "nothing is on its way",
        async () => {
          before = parseSums(await scene.metrics());
          if (before === undefined || !isDrained(before)) return undefined;
          acknowledged = new Map(scene.proxy.acknowledged);
          all.push(this.#reader.news());
          const after = parseSums(await scene.metrics());
          return isDeepStrictEqual(before, after) ? after : undefined;
        },
        drainedWithinMs,
      );
      for (const each of all) scene.ledger.take(each);
      if (scene.clones.length === 0) this.#troubles.push(...scene.ledger.compare(sums));
    } catch (error) {
      this.#troubles.push(`${String(error)}: ${JSON.stringify(before)}`);
    }
    return { news: news(), acknowledged };
  }
}

/** The same numbers for the same seed. */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
