// The model check of activations on all or none: 200,000 random interleavings over central's rules in memory, and 200 over the real store.
// FLEET_WALKS, FLEET_STORE_WALKS and FLEET_SEED set others.

import { noCounts, versionsMax, walk, type WalkCounts } from "../test/support/fleet-model.ts";
import { StoreCentral } from "../test/support/fleet-model-store.ts";
import { tempDir } from "../test/support/temp-dir.ts";

const walksWanted = Number(process.env["FLEET_WALKS"] ?? 200_000);
const storeWalksWanted = Number(process.env["FLEET_STORE_WALKS"] ?? 200);
const firstSeed = Number(process.env["FLEET_SEED"] ?? 1);
const steps = 60;

export async function run(say: (line: string) => void): Promise<void> {
  const counts = noCounts();
  for (let no = 0; no < walksWanted; no++)
    refuse(await walk({ seed: firstSeed + no, steps }, counts));
  say(text("in memory", counts));
  using directory = tempDir();
  const real = noCounts();
  for (let no = 0; no < storeWalksWanted; no++) {
    await using stack = new AsyncDisposableStack();
    const open = async (world: Parameters<typeof StoreCentral.open>[0]): Promise<StoreCentral> =>
      stack.use(await StoreCentral.open(world, directory.path, versionsMax));
    refuse(await walk({ seed: firstSeed + no, steps, open }, real));
  }
  say(text("the real store", real));
}

function refuse(broken: string | undefined): void {
  if (broken !== undefined) throw new Error(broken);
}

function text(where: string, { walks, steps: taken, ...ends }: WalkCounts): string {
  const { activated, aborted, returned, split } = ends;
  return `${where}: ${walks} interleavings, ${taken} steps, 0 violations; activated ${activated}, given up ${aborted}, taken back ${returned}, told as split ${split}`;
}
