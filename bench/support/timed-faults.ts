// Makes faults on an edge that Prometheus watches, and takes the time from each to its warning and to its alerts, and from its mending to the end of both.

import { inspect } from "node:util";
import type { Figures } from "./figures.ts";
import { comesAbout, type WatchedEdge } from "./watched-edge.ts";

export type Fault = {
  readonly name: string;
  /** None: nobody is left, or nobody knows enough, to warn. */
  readonly warning?: FaultWarning;
  /** Empty: the warning is for whoever looks, and calls nobody. */
  readonly alerts: readonly FaultAlert[];
  readonly breakIt: () => Promise<void>;
  /** None: no end of it is waited for. */
  readonly mend?: () => Promise<void>;
};

export type FaultWarning = {
  readonly code: string;
  /** Why it outlasts the fault by much; only patience waits for its end then. */
  readonly stays?: string;
};

export type FaultAlert = {
  readonly name: string;
  /** The label `code` of an alert that all warnings share. */
  readonly code?: string;
  readonly firesWithinMin: number;
  readonly stays?: string;
};

export type TimedFaultsDeps = {
  readonly watched: WatchedEdge;
  readonly figures: Figures;
  readonly say: (line: string) => void;
  /** How long an end is waited for that comes late by design. */
  readonly patienceMs: number;
  /** The faults, by name, that are made; unsaid: all. */
  readonly isMeant?: RegExp;
};

const minuteMs = 60_000;
/** Much more than any warning takes, and than any end that nothing delays. */
const warnedWithinMs = 5 * minuteMs;
const endedWithinMs = 10 * minuteMs;

export class TimedFaults {
  readonly #deps: TimedFaultsDeps;
  readonly #ends: Promise<void>[] = [];

  constructor(deps: TimedFaultsDeps) {
    this.#deps = deps;
  }

  /** Resolves when the fault is mended; its ends are then waited for. A fault that cannot be made or mended is a miss. */
  async make(fault: Fault): Promise<void> {
    if (this.#deps.isMeant?.test(fault.name) === false) return;
    try {
      await this.#make(fault);
    } catch (error) {
      this.#deps.say(`${fault.name}: ${inspect(error)}`);
      this.#deps.figures.missed.push(fault.name);
    }
  }

  async #make(fault: Fault): Promise<void> {
    const { name, warning, alerts, breakIt, mend } = fault;
    if (!(await comesAbout(async () => this.#isQuiet(fault), endedWithinMs)))
      throw new Error("what it is to cause is there without it");
    const began = performance.now();
    await breakIt();
    if (warning !== undefined)
      await this.#begins(
        `${name}: warned after`,
        async () => this.#warns(warning),
        began,
        warnedWithinMs,
      );
    const firing = alerts.map(async (alert) =>
      this.#begins(
        `${name}: ${alert.name} after`,
        async () => this.#fires(alert),
        began,
        alert.firesWithinMin * minuteMs,
      ),
    );
    await Promise.all(firing);
    if (mend === undefined) return;
    await mend();
    const mended = performance.now();
    const end = `${name}: mended:`;
    if (warning !== undefined)
      this.#ends.push(
        this.#ending(
          `${end} warning ends`,
          async () => this.#warns(warning),
          mended,
          warning.stays,
        ),
      );
    for (const alert of alerts)
      this.#ends.push(
        this.#ending(
          `${end} ${alert.name} ends`,
          async () => this.#fires(alert),
          mended,
          alert.stays,
        ),
      );
  }

  /** Resolves when all ends of what was made have come, or are given up. */
  async ended(): Promise<void> {
    await Promise.all(this.#ends.splice(0));
  }

  /** Nothing of what it causes is left of another fault. */
  async #isQuiet({ warning, alerts }: Fault): Promise<boolean> {
    const told = [
      ...(warning === undefined ? [] : [this.#warns(warning)]),
      ...alerts.map(async (alert) => this.#fires(alert)),
    ];
    return (await Promise.all(told)).every((isTold) => !isTold);
  }

  async #warns({ code }: FaultWarning): Promise<boolean> {
    return (await this.#deps.watched.codes()).includes(code);
  }

  async #fires({ name, code }: FaultAlert): Promise<boolean> {
    return (await this.#deps.watched.alerts("firing", code)).includes(name);
  }

  async #begins(
    what: string,
    isSo: () => Promise<boolean>,
    sinceMs: number,
    withinMs: number,
  ): Promise<void> {
    const leftMs = sinceMs + withinMs - performance.now();
    const cameAbout = await comesAbout(isSo, leftMs);
    // What never came about is told with its limit, as more than that.
    const tookMs = cameAbout ? performance.now() - sinceMs : Infinity;
    this.#deps.figures.add(what, tookMs / 1_000, "s", { most: withinMs / 1_000 });
  }

  async #ending(
    what: string,
    isSo: () => Promise<boolean>,
    sinceMs: number,
    stays: string | undefined,
  ): Promise<void> {
    const { figures, say, patienceMs } = this.#deps;
    const withinMs = stays === undefined ? endedWithinMs : patienceMs;
    const isOver = await comesAbout(async () => !(await isSo()), withinMs);
    const tookS = isOver ? (performance.now() - sinceMs) / 1_000 : Infinity;
    if (stays === undefined) figures.add(what, tookS, "s", { most: withinMs / 1_000 });
    else if (isOver) figures.add(what, tookS, "s", undefined, stays);
    else say(`${what}: not waited for any longer: ${stays}`);
  }
}
