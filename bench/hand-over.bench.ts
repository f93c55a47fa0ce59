// `npm run bench -- hand-over [STRIDE]`: the whole matrix of hand-overs: every kind of request, in every split into two reads (and as many into three), over plain
// TCP, TLS and behind a PROXY header, behind hits in the same bytes and after hits that were answered. STRIDE takes every so many-th split. It measures nothing:
// it ends with the first wrong answer or record.

import {
  cutsOf,
  HandOverStage,
  kinds,
  places,
  ways,
  type Kind,
  type Place,
  type Way,
} from "../test/agent/accelerator/lane/hand-over.ts";

export async function run(say: (line: string) => void, args: readonly string[]): Promise<void> {
  const stride = Number(args[0] ?? 1);
  await using stage = await HandOverStage.open();
  let played = 0;
  const play = async (kind: Kind, way: Way, place: Place, cuts: readonly number[]) => {
    try {
      await stage.play(kind, way, place, cuts);
      played++;
    } catch (error) {
      throw new Error(`${kind.name}, ${way}, ${place}, cut at ${cuts.join(" and ")}`, { cause: error }); // prettier-ignore
    }
  };
  const began = performance.now();
  for (const kind of kinds) {
    const cuts = cutsOf(kind).filter((_, at) => at % stride === 0);
    for (const way of ways)
      for (const place of places)
        for (const [at, cut] of cuts.entries()) {
          await play(kind, way, place, [cut]);
          const other = cuts[(at * 7 + 3) % cuts.length] ?? cut;
          if (other > cut) await play(kind, way, place, [cut, other]);
        }
  }
  const seconds = (performance.now() - began) / 1_000;
  say(
    `${kinds.length} kinds, ${ways.length} ways, ${places.length} places: ${played} connections, 0 wrong answers or records; ${stage.quick} answered in one step; ${Math.round(seconds)} s`,
  );
}
