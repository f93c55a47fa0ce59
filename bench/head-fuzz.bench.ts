// `npm run bench -- head-fuzz [HEADS [SEED]]`: ten million mutated heads before the scanner, unless told; what it takes, node's parser and nginx read alike, or refuse.
// It measures nothing: it ends with the first head that one of them reads otherwise.

import { scanHead } from "../src/agent/accelerator/lane/head-scanner.ts";
import {
  knownSeeds,
  otherwiseInNode,
  seeds,
  takenOf,
  type Taken,
} from "../test/agent/accelerator/lane/head-fuzz.ts";
import { hasHostileHeads, hostileHeads } from "../test/agent/accelerator/lane/hostile-heads.ts";
import { hasNginx, SecondParser } from "../test/agent/accelerator/lane/second-parser.ts";

const headsDefault = 10_000_000;
const roundHeads = 50_000;
const sayEvery = 1_000_000;

export async function run(say: (line: string) => void, args: readonly string[]): Promise<void> {
  const heads = Number(args[0] ?? headsDefault);
  let seed = Number(args[1] ?? 1_000);
  if (!hasNginx) say("nginx is not installed: node's parser alone");
  if (!hasHostileHeads) say("shared/data/hostile is not there: its heads are no seeds");
  await using nginx = hasNginx ? await SecondParser.open() : undefined;
  const from = [seeds, seeds, knownSeeds, hasHostileHeads ? hostileHeads() : knownSeeds];
  const totals = { read: 0, refused: 0 };
  let [done, taken] = [0, 0];
  for (; done < heads; seed++) {
    const some: Taken[] = [...takenOf(scanHead, roundHeads, seed, from[seed % from.length])];
    for (const { bytes, found } of some) {
      const why = otherwiseInNode(bytes, found);
      if (why !== undefined)
        throw new Error(`seed ${seed}: ${why}: ${JSON.stringify(bytes.toString("latin1"))}`);
    }
    await nginx?.compare(some, totals);
    taken += some.length;
    done += roundHeads;
    if (done % sayEvery === 0) say(`${done} heads`);
  }
  say(
    `${done} mutated heads, ${taken} taken: node reads none otherwise; nginx read ${totals.read} alike, refused ${totals.refused}, read 0 otherwise`,
  );
}
