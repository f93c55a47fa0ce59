// State directories that are not what they seem: one brought back from before, and one that two agents believe to be theirs.

import {
  cpSync,
  mkdirSync,
  renameSync,
  rmSync,
  readFileSync,
  writeFileSync,
  readdirSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parse, stringify } from "yaml";
import { domain } from "./customer-script.ts";
import { freePorts } from "./free-ports.ts";
import { parseSums } from "./log-oracle-balance.ts";
import { Producer } from "./log-oracle-producer.ts";
import { Oracle, randomFrom, type OracleFigures } from "./log-oracle-run.ts";
import { Scene } from "./log-oracle-scene.ts";
import { answers200, Program } from "./process.ts";
import { until } from "./until.ts";

/** What a copy of a lane that goes on does to it: numbers that both give out belong to the first that tells central, the other tells the loss. */
const reasonsOfCopies = ["conflict", "released", "crash"];
const produceMs = 1_500;
const cloneFirstId = 1_000_000;
const cloneNo = 1_000;

/** The copy is taken while the agent runs, with a backlog; the agent goes on, everything arrives, then the copy comes back. */
export async function runRolledBack(): Promise<OracleFigures> {
  await using scene = await Scene.open();
  await using oracle = new Oracle(scene, randomFrom(11), { reasons: reasonsOfCopies });
  await sleep(produceMs);
  scene.line.state = "cut";
  await sleep(produceMs / 2);
  const copied = scene.run;
  const copy = await takeCopy(scene, "before");
  const copiedMs = Date.now();
  await sleep(produceMs / 2);
  await oracle.settle();
  await oracle.producer.pause();
  await scene.stopAgent();
  rmSync(scene.stateDir, { recursive: true });
  renameSync(copy, scene.stateDir);
  scene.ledger.rebase(
    scene.spoolDir,
    scene.runs.map(({ epoch }) => epoch),
    "undone",
  );
  copied.killedMs = copiedMs; // What comes back was cut off then, and tells it.
  await scene.startAgent();
  oracle.producer.resume();
  await sleep(produceMs);
  await oracle.settle();
  return oracle.figures;
}

/** Two agents go on from one state, with a backlog, at the same time. */
export async function runCloned(): Promise<OracleFigures> {
  await using scene = await Scene.open();
  await using oracle = new Oracle(scene, randomFrom(12), { reasons: reasonsOfCopies });
  await sleep(produceMs);
  scene.line.state = "cut";
  await sleep(produceMs / 2);
  const original = scene.run;
  const directory = await takeCopy(scene, "clone");
  original.killedMs = Date.now(); // The clone tells what the copy cut off as a crash.
  original.isDamaged = true;
  await using clone = await Clone.start(scene, directory);
  scene.line.state = "open";
  await using producer = new Producer({
    port: clone.visitors,
    domain,
    random: randomFrom(13),
    run: () => clone.no,
    firstId: cloneFirstId,
  });
  await sleep(2 * produceMs);
  await producer.pause();
  await oracle.producer.pause();
  await clone.drained();
  await oracle.settle(producer.takeClaims());
  return oracle.figures;
}

/** As a snapshot of the machine would have it; of files that change meanwhile, any moment. Begun anew when one of them goes while it is copied. */
async function takeCopy(scene: Scene, name: string): Promise<string> {
  const copy = join(scene.edge.dir, name);
  return until("a copy", () => {
    rmSync(copy, { recursive: true, force: true });
    cpSync(scene.stateDir, copy, {
      recursive: true,
      filter: (path) => !path.endsWith(".sock") && !path.endsWith(".lock"),
    });
    return copy;
  });
}

class Clone implements AsyncDisposable {
  readonly no: number;
  readonly visitors: number;
  readonly #metrics: number;
  readonly #program: Program;

  private constructor(no: number, visitors: number, metrics: number, program: Program) {
    this.no = no;
    this.visitors = visitors;
    this.#metrics = metrics;
    this.#program = program;
  }

  static async start(scene: Scene, stateDir: string): Promise<Clone> {
    const [visitors = 0, metrics = 0] = await freePorts(2);
    const spool = join(stateDir, "spool");
    mkdirSync(spool, { recursive: true });
    const before = new Set(readdirSync(spool).map((name) => name.slice(0, 16)));
    const path = join(scene.edge.dir, "clone.yaml");
    const settings = parse(readFileSync(join(scene.edge.dir, "agent.yaml"), "utf8")) as Record<
      string,
      object
    >; // As the edge wrote it.
    writeFileSync(
      path,
      stringify({
        ...settings,
        state_dir: stateDir,
        accelerator: { ...settings["accelerator"], listen: `127.0.0.1:${visitors}` },
        metrics: { listen: `127.0.0.1:${metrics}` },
      }),
    );
    const program = await Program.start(["agent", "run", "--config", path], () =>
      answers200(`http://127.0.0.1:${metrics}/readyz`),
    );
    const epochs = readdirSync(spool)
      .filter((name) => name.endsWith(".seg"))
      .map((name) => name.slice(0, 16));
    const no = cloneNo;
    const epoch = epochs.find((each) => !before.has(each)) ?? "";
    scene.clones.push({ no, epoch, killedMs: undefined, isDamaged: false });
    return new Clone(no, visitors, metrics, program);
  }

  async drained(): Promise<void> {
    await until(
      "the clone's records are at central",
      async () => {
        await sleep(200);
        const url = `http://127.0.0.1:${this.#metrics}/metrics/deployment`;
        const sums = parseSums(await (await fetch(url)).text());
        return sums !== undefined && sums.spooled === 0 && sums.inMemory === 0;
      },
      150_000,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#program[Symbol.asyncDispose]();
  }
}
